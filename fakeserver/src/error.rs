//! [`CommandError`]: every simple error that a command can answer, one variant each, texts as redis-server 7.0.15 spells them.
//!
//! Variants are in alphabetical order.

use thiserror::Error;

use crate::value::Blob;

/// An error that a client caused; it is answered and nothing else happens.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError {
    /// `ACL LOAD` and `ACL SAVE` without a file of users.
    #[error(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration."
    )]
    AclFileMissing,
    /// `COUNT` of `XAUTOCLAIM` or of a search below 1.
    #[error("ERR COUNT must be > 0")]
    AutoclaimCount,
    /// A bit's offset that is no integer, or beyond the longest string.
    #[error("ERR bit offset is not an integer or out of range")]
    BitOffset,
    /// A type of `BITFIELD` that does not exist.
    #[error(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
    )]
    BitfieldEncoding,
    /// An `OVERFLOW` of `BITFIELD` that does not exist.
    #[error("ERR Invalid OVERFLOW type specified")]
    BitfieldOverflowType,
    /// `BITFIELD_RO` with a subcommand that writes.
    #[error("ERR BITFIELD_RO only supports the GET subcommand")]
    BitfieldReadOnly,
    /// `BITOP NOT` of several keys.
    #[error("ERR BITOP NOT must be called with a single source key.")]
    BitopNotOfSeveral,
    /// `BITPOS` of something that is no bit.
    #[error("ERR The bit argument must be 1 or 0.")]
    BitposOfOtherBit,
    /// A script or function takes too long.
    #[error("BUSY Redis is busy running a script. You can only call {0} KILL or SHUTDOWN NOSAVE.")]
    Busy(&'static str),
    /// `XGROUP CREATE` of a group that there is.
    #[error("BUSYGROUP Consumer Group name already exists")]
    BusyGroup,
    /// A `COUNT` below 0 where 0 means all.
    #[error("ERR COUNT can't be negative")]
    CountNegative,
    /// A `COUNT` below 1.
    #[error("ERR count should be greater than 0")]
    CountNotPositive,
    /// `AUTH password` where no password is configured.
    #[error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
    )]
    AuthWithoutPassword,
    /// A client name with blanks, line breaks or bytes that are not printable ASCII.
    #[error("ERR Client names cannot contain spaces, newlines or special characters.")]
    ClientName,
    /// A command of a cluster.
    #[error("ERR This instance has cluster support disabled")]
    ClusterDisabled,
    /// `RESTORE` to a key that exists.
    #[error("BUSYKEY Target key name already exists.")]
    BusyKey,
    /// A text that is not known before run time: a script's own error, or one that names what the client sent.
    #[error("{}", String::from_utf8_lossy(.0))]
    Custom(Blob),
    /// A database number beyond `databases`.
    #[error("ERR DB index is out of range")]
    DbIndexOutOfRange,
    /// `DECRBY` by the one integer that has no negative.
    #[error("ERR decrement would overflow")]
    DecrementOverflow,
    /// `DISCARD` outside of a transaction.
    #[error("ERR DISCARD without MULTI")]
    DiscardWithoutMulti,
    /// `XSETID ENTRIESADDED` below 0.
    #[error("ERR entries_added must be positive")]
    EntriesAddedNegative,
    /// `XSETID ENTRIESADDED` below the number of entries.
    #[error("ERR The entries_added specified in XSETID is smaller than the target stream length")]
    EntriesAddedTooFew,
    /// `XGROUP ENTRIESREAD` below -1.
    #[error("ERR value for ENTRIESREAD must be positive or -1")]
    EntriesReadNegative,
    /// `EXEC` of a transaction in which a command could not be queued.
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    ExecAbort,
    /// `EXEC` outside of a transaction.
    #[error("ERR EXEC without MULTI")]
    ExecWithoutMulti,
    /// `EXPIRE` and its kin with NX and another condition.
    #[error("ERR NX and XX, GT or LT options at the same time are not compatible")]
    ExpireConditionsExclude,
    /// `EXPIRE` and its kin with GT and LT.
    #[error("ERR GT and LT options at the same time are not compatible")]
    ExpireOrdersExclude,
    /// `ANY` of a search without `COUNT`.
    #[error("ERR the ANY argument requires COUNT argument")]
    GeoAnyWithoutCount,
    /// A width or height below 0.
    #[error("ERR height or width cannot be negative")]
    GeoBoxNegative,
    /// `FROMMEMBER` and its kin with what is no member.
    #[error("ERR could not decode requested zset member")]
    GeoMemberMissing,
    /// A radius, width or height that is no number; which of them.
    #[error("ERR need numeric {0}")]
    GeoNotNumeric(&'static str),
    /// Coordinates beyond the edges of what scores can stand for.
    #[error("ERR invalid longitude,latitude pair {0}")]
    GeoPositionInvalid(Box<str>),
    /// A radius below 0.
    #[error("ERR radius cannot be negative")]
    GeoRadiusNegative,
    /// A result to be kept with what only a reply can hold; the command, or the option of it.
    #[error("ERR {0} is not compatible with WITHDIST, WITHHASH and WITHCOORD options")]
    GeoStoreWithDetails(&'static str),
    /// A unit of length that is not known.
    #[error("ERR unsupported unit provided. please use M, KM, FT, MI")]
    GeoUnitUnknown,
    /// `XGROUP` of a missing key.
    #[error(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically."
    )]
    GroupNeedsKey,
    /// `XREADGROUP` without GROUP.
    #[error("ERR Missing GROUP option for XREADGROUP")]
    GroupOptionMissing,
    /// `XREAD GROUP`.
    #[error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")]
    GroupOptionOfXread,
    /// `XREADGROUP` that waited for a group which was destroyed.
    #[error("NOGROUP the consumer group this client was blocked on no longer exists")]
    GroupVanished,
    /// `HINCRBYFLOAT` of a field that holds something else.
    #[error("ERR hash value is not a float")]
    HashValueNotAFloat,
    /// `HINCRBY` of a field that holds something else.
    #[error("ERR hash value is not an integer")]
    HashValueNotAnInteger,
    /// A `HyperLogLog` whose registers cannot be read.
    #[error("INVALIDOBJ Corrupted HLL object detected")]
    HyperLogLogCorrupted,
    /// A string that is no `HyperLogLog`.
    #[error("WRONGTYPE Key is not a valid HyperLogLog string value.")]
    HyperLogLogInvalid,
    /// `PFDEBUG` of a missing key.
    #[error("ERR The specified key does not exist")]
    HyperLogLogMissing,
    /// `PFDEBUG DECODE` of a dense `HyperLogLog`.
    #[error("ERR HLL encoding is not sparse")]
    HyperLogLogNotSparse,
    /// `INCRBYFLOAT` and its kin beyond the largest float.
    /// `INCRBYFLOAT` and its kin with an infinite result.
    #[error("ERR increment would produce NaN or Infinity")]
    IncrementNotFinite,
    /// `HELLO` before authentication.
    #[error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
    )]
    HelloUnauthenticated,
    /// `INCR` and its kin beyond `i64`.
    #[error("ERR increment or decrement would overflow")]
    IncrementOverflow,
    /// `ZADD INCR` with more than one member.
    #[error("ERR INCR option supports a single increment-element pair")]
    IncrementSinglePair,
    /// An index outside of a list.
    #[error("ERR index out of range")]
    IndexOutOfRange,
    /// A scan cursor that is no number.
    #[error("ERR invalid cursor")]
    InvalidCursor,
    /// A relative or absolute time that does not fit.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpire(&'static str),
    /// A minimal idle time that is no integer; the command's name in upper case.
    #[error("ERR Invalid min-idle-time argument for {0}")]
    InvalidMinIdleTime(&'static str),
    /// An option's value that is no integer.
    #[error("ERR Invalid {0} option argument for XCLAIM")]
    InvalidXclaimOption(&'static str),
    /// `XREADGROUP` with `$`.
    #[error(
        "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
    )]
    LastIdOfXread,
    /// `LCS` asked for both of its other replies.
    #[error("ERR If you want both the length and indexes, please just use IDX.")]
    LcsLengthAndIndexes,
    /// `LCS` of a key that holds another type.
    #[error("ERR The specified keys must contain string values")]
    LcsOfOtherTypes,
    /// `LCS` of strings whose table would be too large.
    #[error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")]
    LcsTooLarge,
    /// A limit of a lexicographical range that does not begin with `[` or `(`.
    #[error("ERR min or max not valid string range item")]
    LexRangeInvalid,
    /// `OBJECT IDLETIME` where access frequencies are kept instead.
    #[error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
    )]
    LfuPolicy,
    /// `LIMIT` in a range of ranks.
    #[error(
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
    )]
    LimitNeedsScoreOrLex,
    /// A `LIMIT` below 0.
    #[error("ERR LIMIT can't be negative")]
    LimitNegative,
    /// A `MAXLEN` below 0.
    #[error("ERR MAXLEN can't be negative")]
    MaxlenNegative,
    /// A connection beyond `maxclients`.
    #[error("ERR max number of clients reached")]
    MaxClients,
    /// `MIGRATE` with `KEYS` and a key.
    #[error("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string")]
    MigrateKeyBesideKeys,
    /// `MULTI` inside of a transaction.
    #[error("ERR MULTI calls can not be nested")]
    MultiNested,
    /// A float argument that must be finite.
    #[error("ERR value is NaN or Infinity")]
    NanOrInfinity,
    /// `XREAD` with `>`.
    #[error(
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
    )]
    NewIdOfXread,
    /// `XREAD NOACK`.
    #[error("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")]
    NoackOptionOfXread,
    /// A command before authentication.
    #[error("NOAUTH Authentication required.")]
    NoAuth,
    /// A channel that the user may not use.
    #[error("NOPERM this user has no permissions to access one of the channels used as arguments")]
    NoPermissionForChannel,
    /// A key that the user may not use.
    #[error("NOPERM this user has no permissions to access one of the keys used as arguments")]
    NoPermissionForKey,
    /// A queued command that the user may no longer run; the reason.
    #[error(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: {0}"
    )]
    NoPermissionInExec(&'static str),
    /// A command that the user of a script may not run; what it lacks.
    #[error("ERR The user executing the script {0}")]
    NoPermissionInScript(&'static str),
    /// `SORT` with an option that looks at keys which the user may not see; the option.
    #[error("ERR {0} option of SORT denied due to insufficient ACL permissions.")]
    NoPermissionToDereference(&'static str),
    /// A command that the user may not run; its full name.
    #[error("NOPERM this user has no permissions to run the '{0}' command")]
    NoPermissionToRun(Box<str>),
    /// A set operation on no key; the command's full name in lower case.
    #[error("ERR at least 1 input key is needed for '{0}' command")]
    NoInputKeys(Box<str>),
    /// `OBJECT FREQ` where no access frequency is kept.
    #[error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
    )]
    NoLfuPolicy,
    /// A protocol version that `HELLO` does not know.
    #[error("NOPROTO unsupported protocol version")]
    NoProto,
    /// A key that must exist does not.
    #[error("ERR no such key")]
    NoSuchKey,
    /// A bit that is neither 0 nor 1.
    #[error("ERR bit is not an integer or out of range")]
    NotABit,
    /// A float argument that is none.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// A command that scripts may not call.
    #[error("ERR This Redis command is not allowed from script")]
    NotAllowedFromScript,
    /// A command that a transaction may not hold.
    #[error("ERR Command not allowed inside a transaction")]
    NotAllowedInTransaction,
    /// Nothing is there to be killed.
    #[error("NOTBUSY No scripts in execution right now.")]
    NotBusy,
    /// A command that a RESP2 client that subscribes may not send; its full name.
    #[error(
        "ERR Can't execute '{0}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    )]
    NotForSubscribers(Box<str>),
    /// An integer argument that is none, or does not fit.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// A write while there are fewer replicas than `min-replicas-to-write`.
    #[error("NOREPLICAS Not enough good replicas to write.")]
    NotEnoughReplicas,
    /// A number of keys below 1.
    #[error("ERR numkeys should be greater than 0")]
    NumkeysNotPositive,
    /// A number of keys that is larger than the number of words behind it.
    #[error("ERR Number of keys can't be greater than number of args")]
    NumkeysTooLarge,
    /// A negative offset into a string.
    #[error("ERR offset is out of range")]
    OffsetOutOfRange,
    /// A command that may need memory, beyond `maxmemory`.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// An index or length out of its range.
    #[error("ERR value is out of range")]
    OutOfRange,
    /// An integer outside of the bounds that the text names.
    #[error("ERR value is out of range, value must between {min} and {max}")]
    OutOfRangeBetween {
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A length or count that must not be negative.
    #[error("ERR value is out of range, must be positive")]
    OutOfRangePositive,
    /// A payload of another version, or whose checksum is wrong.
    #[error("ERR DUMP payload version or checksum are wrong")]
    PayloadChecksum,
    /// A payload whose value cannot be read.
    #[error("ERR Bad data format")]
    PayloadFormat,
    /// A `RANK` of 0.
    #[error(
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list"
    )]
    RankZero,
    /// An access frequency that is no byte.
    #[error("ERR Invalid FREQ value, must be >= 0 and <= 255")]
    RestoreFrequency,
    /// An idle time below 0.
    #[error("ERR Invalid IDLETIME value, must be >= 0")]
    RestoreIdleTime,
    /// A time to live below 0.
    #[error("ERR Invalid TTL value, must be >= 0")]
    RestoreTtl,
    /// `COPY` or `MOVE` of a key onto itself.
    #[error("ERR source and destination objects are the same")]
    SameObject,
    /// `SORT` of an element or by a weight that is no number.
    #[error("ERR One or more scores can't be converted into double")]
    SortWeightNotAFloat,
    /// A score that became NaN: an infinity and its opposite were added.
    #[error("ERR resulting score is not a number (NaN)")]
    ScoreNan,
    /// A limit of a score range that is no number.
    #[error("ERR min or max is not a float")]
    ScoreRangeInvalid,
    /// An exclusive end of a range that has nothing before it.
    #[error("ERR invalid end ID for the interval")]
    StreamEndInvalid,
    /// `XADD` behind the highest id.
    #[error("ERR The stream has exhausted the last possible ID, unable to add more items")]
    StreamExhausted,
    /// `XSETID` below its own MAXDELETEDID.
    #[error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")]
    StreamIdBelowGiven,
    /// `XSETID` below the last entry.
    #[error("ERR The ID specified in XSETID is smaller than the target stream top item")]
    StreamIdBelowTop,
    /// A text that is no id of a stream entry.
    #[error("ERR Invalid stream ID specified as stream command argument")]
    StreamIdInvalid,
    /// `XADD` of an id that is not above the last one.
    #[error("ERR The ID specified in XADD is equal or smaller than the target stream top item")]
    StreamIdNotAbove,
    /// `XADD` of the lowest id.
    #[error("ERR The ID specified in XADD must be greater than 0-0")]
    StreamIdZero,
    /// An exclusive start of a range that has nothing behind it.
    #[error("ERR invalid start ID for the interval")]
    StreamStartInvalid,
    /// `XREADGROUP` that waited for a key which is gone.
    #[error("UNBLOCKED the stream key no longer exists")]
    StreamVanished,
    /// `XREAD` and `XREADGROUP` with an odd number of words behind STREAMS.
    #[error(
        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
    )]
    StreamsUnbalanced,
    /// A string that would become longer than the protocol can carry.
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    /// An option or combination that the command does not know.
    #[error("ERR syntax error")]
    Syntax,
    /// A time-out below 0, or beyond `i64` milliseconds.
    #[error("ERR timeout is negative")]
    TimeoutNegative,
    /// A time-out in seconds that is no number.
    #[error("ERR timeout is not a float or out of range")]
    TimeoutNotAFloat,
    /// A timeout that is no integer.
    #[error("ERR timeout is not an integer or out of range")]
    TimeoutNotAnInteger,
    /// `LIMIT` of an exact trim.
    #[error("ERR syntax error, LIMIT cannot be used without the special ~ option")]
    TrimLimitNeedsApproximation,
    /// `LIMIT` without a trim.
    #[error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")]
    TrimLimitNeedsStrategy,
    /// `LIMIT` of a trim below 0.
    #[error("ERR The LIMIT argument must be >= 0.")]
    TrimLimitNegative,
    /// `MAXLEN` of a trim below 0.
    #[error("ERR The MAXLEN argument must be >= 0.")]
    TrimMaxlenNegative,
    /// `MAXLEN` and `MINID` in one trim.
    #[error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")]
    TrimStrategies,
    /// `XTRIM` with options alone.
    #[error("ERR syntax error, XTRIM must be called with a trimming strategy")]
    TrimWithoutStrategy,
    /// A script that has written, so that its end would leave half of its work behind.
    #[error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
    )]
    Unkillable,
    /// `WATCH` inside of a transaction.
    #[error("ERR WATCH inside MULTI is not allowed")]
    WatchInsideMulti,
    /// A weight of a set operation that is no number.
    #[error("ERR weight value is not a float")]
    WeightNotAFloat,
    /// `WITHSCORES` in a lexicographical range.
    #[error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")]
    WithScoresInLexRange,
    /// Too few or too many arguments; the full name in lower case, `config|get` for a subcommand.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(Box<str>),
    /// A user that does not exist or has another password.
    #[error("WRONGPASS invalid username-password pair or user is disabled.")]
    WrongPassword,
    /// A key that holds another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// `ZADD` with more than one of NX, GT and LT.
    #[error("ERR GT, LT, and/or NX options at the same time are not compatible")]
    ZaddComparisons,
    /// `ZADD` with XX and NX.
    #[error("ERR XX and NX options at the same time are not compatible")]
    ZaddXxAndNx,
}

impl CommandError {
    /// An error whose text is made at run time, its code included.
    pub fn custom(text: impl Into<Blob>) -> CommandError {
        CommandError::Custom(text.into())
    }

    /// The error's text as it is sent, its code included; it can echo bytes that are not UTF-8.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            CommandError::Custom(text) => text.to_vec(),
            error => error.to_string().into_bytes(),
        }
    }
}

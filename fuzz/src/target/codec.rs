//! What cjson, cmsgpack and struct read: what was read and written has the same length from then on. (The order of a table's
//! fields may change, and of `MessagePack`'s tables those get lost that are too deep, or hold nil.)

use std::cell::RefCell;

use fakeserver::Reply;

use super::bench::Bench;

/// Which library, and how a text goes through it twice.
const WAYS: [&str; 4] = [
    "local ok, value = pcall(cjson.decode, ARGV[1])
     if not ok then return 'refused' end
     local ok, text = pcall(cjson.encode, value)
     if not ok then return 'refused' end
     return {#text, #cjson.encode(cjson.decode(text))}",
    "local values = {pcall(cmsgpack.unpack, ARGV[1])}
     if not values[1] or #values < 2 then return 'refused' end
     local text = cmsgpack.pack(unpack(values, 2))
     for _ = 1, 2 do text = cmsgpack.pack(cmsgpack.unpack(text)) end
     return {#text, #cmsgpack.pack(cmsgpack.unpack(text))}",
    "local format, text = string.match(ARGV[1], '^([^|]*)|(.*)$')
     if not format then return 'refused' end
     local values = {pcall(struct.unpack, format, text)}
     if not values[1] or #values < 3 then return 'refused' end
     values[#values] = nil
     local ok, packed = pcall(struct.pack, format, unpack(values, 2))
     if not ok then return 'refused' end
     return 'packed'",
    "for at = -2, #ARGV[1] + 2 do
       for limit = 0, 3 do pcall(cmsgpack.unpack_limit, ARGV[1], limit, at) end
       pcall(cmsgpack.unpack_one, ARGV[1], at)
       pcall(struct.size, ARGV[1]) pcall(struct.unpack, 'sBHLhl', ARGV[1], at)
     end
     return 'read'",
];

thread_local! {
    /// No input is code here, so all go through one Lua state: making one takes longer than they do.
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
}

/// The first byte chooses the way.
pub(super) fn run(bytes: &[u8]) -> Result<(), String> {
    let Some((way, text)) = bytes.split_first() else {
        return Ok(());
    };
    let way = WAYS[usize::from(*way) % WAYS.len()];
    let reply = BENCH.with_borrow_mut(|bench| bench.call([b"EVAL", way.as_bytes(), b"0", text]));
    match &reply {
        Reply::Bulk(_) => Ok(()),
        Reply::Array(both) if both.first() == both.get(1) => Ok(()),
        Reply::Error(error) if is_limit(&error.to_string()) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn is_limit(text: &str) -> bool {
    let limits = [
        "not enough memory",
        "more instructions than",
        "too many results",
        "too many return values",
        "Lua stack",
        // A key that is a table too deep to be packed comes back as nil, on redis-server too.
        "table index is nil",
    ];
    limits.iter().any(|limit| text.contains(limit))
}

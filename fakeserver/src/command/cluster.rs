//! Cluster commands of a server that is no cluster: every one is refused, after its arity was checked.

use super::{Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec};
use crate::error::CommandError;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Cluster, &[
    //                 name       arity  flags                    keys           handler
    Command::control  ("ASKING",    1,   &[Fast],                 KeySpec::None, refuse).since("3.0.0"),
    Command::container("CLUSTER",  -2,   &[], CLUSTER).since("3.0.0"),
    Command::control  ("READONLY",  1,   &[Loading, Stale, Fast], KeySpec::None, refuse).since("3.0.0"),
    Command::control  ("READWRITE", 1,   &[Loading, Stale, Fast], KeySpec::None, refuse).since("3.0.0"),
]);

#[rustfmt::skip]
const CLUSTER: &[Command] = &[
    //               name                   arity  flags                           keys           handler
    Command::control("ADDSLOTS",             -3,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("ADDSLOTSRANGE",        -4,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("7.0.0"),
    Command::control("BUMPEPOCH",             2,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("COUNT-FAILURE-REPORTS", 3,   &[Admin, Stale],                 KeySpec::None, refuse).since("3.0.0"),
    Command::control("COUNTKEYSINSLOT",       3,   &[Stale],                        KeySpec::None, refuse).since("3.0.0"),
    Command::control("DELSLOTS",             -3,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("DELSLOTSRANGE",        -4,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("7.0.0"),
    Command::control("FAILOVER",             -2,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("FLUSHSLOTS",            2,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("FORGET",                3,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("GETKEYSINSLOT",         4,   &[Stale],                        KeySpec::None, refuse).since("3.0.0"),
    Command::control("HELP",                  2,   &[Loading, Stale],               KeySpec::None, refuse).since("5.0.0"),
    Command::control("INFO",                  2,   &[Stale],                        KeySpec::None, refuse).since("3.0.0"),
    Command::control("KEYSLOT",               3,   &[Stale],                        KeySpec::None, refuse).since("3.0.0"),
    Command::control("LINKS",                 2,   &[Stale],                        KeySpec::None, refuse).since("7.0.0"),
    Command::control("MEET",                 -4,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("MYID",                  2,   &[Stale],                        KeySpec::None, refuse).since("3.0.0"),
    Command::control("NODES",                 2,   &[Stale],                        KeySpec::None, refuse).since("3.0.0"),
    Command::control("REPLICAS",              3,   &[Admin, Stale],                 KeySpec::None, refuse).since("5.0.0"),
    Command::control("REPLICATE",             3,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("RESET",                -2,   &[Admin, NoScript, Stale],       KeySpec::None, refuse).since("3.0.0"),
    Command::control("SAVECONFIG",            2,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("SET-CONFIG-EPOCH",      3,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("SETSLOT",              -4,   &[Admin, Stale, NoAsyncLoading], KeySpec::None, refuse).since("3.0.0"),
    Command::control("SHARDS",                2,   &[Stale],                        KeySpec::None, refuse).since("7.0.0"),
    Command::control("SLAVES",                3,   &[Admin, Stale],                 KeySpec::None, refuse).since("3.0.0"),
    Command::control("SLOTS",                 2,   &[Stale],                        KeySpec::None, refuse).since("3.0.0"),
];

/// `CLUSTER ...`, `ASKING`, `READONLY`, `READWRITE`: always an error.
fn refuse(_: &mut ControlCall<'_>) -> CommandResult {
    Err(CommandError::ClusterDisabled)
}

//! The source of a script: whatever it does, the next script finds its environment as it was.

use fakeserver::Reply;

use super::bench::{Bench, bytes_of};

/// What the next script sees.
const VIEW: &str = "
    local names = {}
    for _, library in pairs({_G, redis, string, table, math, bit, cjson, cmsgpack, struct, coroutine}) do
        for name, value in pairs(library) do
            if library ~= _G or (name ~= 'KEYS' and name ~= 'ARGV') then
                names[#names + 1] = tostring(name) .. type(value)
            end
        end
    end
    table.sort(names)
    local ok = pcall(function() return ('x') + 1 end)
    return {redis.sha1hex(table.concat(names)), tostring(ok), ('ab'):rep(2), redis.call('ECHO', 'x'), #ARGV}";

pub(super) fn run(bytes: &[u8]) -> Result<(), String> {
    let mut bench = Bench::new();
    let before = bench.call(["EVAL", VIEW, "0"]);
    if before.is_error() {
        return Err(format!("a new server answers {before:?}"));
    }
    for request in [
        &[b"EVAL", bytes, b"1", b"key", b"argument"][..],
        &[b"EVAL_RO", bytes, b"0"],
    ] {
        // A reply is written and dropped as any other.
        drop(bytes_of(&bench.call(request)));
    }
    // What the script asked of the collector stays, as in Redis.
    bench.call(["EVAL", "collectgarbage('restart')", "0"]);
    let after = bench.call(["EVAL", VIEW, "0"]);
    if after == before || is_out_of_memory(&after) {
        return Ok(());
    }
    Err(format!("before: {before:?}\nafter: {after:?}"))
}

/// Large values may still be held by what the script has made of itself, a coroutine that never ended.
fn is_out_of_memory(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(error) if error.to_string().contains("not enough memory"))
}

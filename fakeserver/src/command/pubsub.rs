//! Publish and subscribe (pubsub.c). What a subscriber gets is pushed: to RESP2 clients as plain arrays.

use super::introspect::{help, subcommand_syntax};
use super::{Caller, Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words};
use crate::error::CommandError;
use crate::pubsub::Topic;
use crate::value::{Blob, glob};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::PubSub, &[
    //                 name           arity  flags                                                          keys            handler
    Command::control  ("PSUBSCRIBE",   -2,   &[PubSub, NoScript, Loading, Stale, Subscriber, TakesPatterns], KeySpec::None,  psubscribe).since("2.0.0"),
    Command::control  ("PUBLISH",       3,   &[PubSub, Loading, Stale, Fast, MayReplicate, TakesChannel],    KeySpec::None,  publish).since("2.0.0"),
    Command::container("PUBSUB",       -2,   &[], PUBSUB).since("2.8.0"),
    Command::control  ("PUNSUBSCRIBE", -1,   &[PubSub, NoScript, Loading, Stale, Subscriber],                KeySpec::None,  punsubscribe).since("2.0.0"),
    Command::control  ("SPUBLISH",      3,   &[PubSub, Loading, Stale, Fast, MayReplicate, TakesChannel],    KeySpec::FIRST, spublish).since("7.0.0"),
    Command::control  ("SSUBSCRIBE",   -2,   &[PubSub, NoScript, Loading, Stale, Subscriber, TakesChannels], KeySpec::ALL,   ssubscribe).since("7.0.0"),
    Command::control  ("SUBSCRIBE",    -2,   &[PubSub, NoScript, Loading, Stale, Subscriber, TakesChannels], KeySpec::None,  subscribe).since("2.0.0"),
    Command::control  ("SUNSUBSCRIBE", -1,   &[PubSub, NoScript, Loading, Stale, Subscriber],                KeySpec::ALL,   sunsubscribe).since("7.0.0"),
    Command::control  ("UNSUBSCRIBE",  -1,   &[PubSub, NoScript, Loading, Stale, Subscriber],                KeySpec::None,  unsubscribe).since("2.0.0"),
]);

#[rustfmt::skip]
const PUBSUB: &[Command] = &[
    //               name           arity  flags                       keys           handler
    Command::control("CHANNELS",     -2,   &[PubSub, Loading, Stale],  KeySpec::None, channels).since("2.8.0"),
    Command::control("HELP",          2,   &[Loading, Stale],          KeySpec::None, help).since("6.2.0"),
    Command::control("NUMPAT",        2,   &[PubSub, Loading, Stale],  KeySpec::None, numpat).since("2.8.0"),
    Command::control("NUMSUB",       -2,   &[PubSub, Loading, Stale],  KeySpec::None, numsub).since("2.8.0"),
    Command::control("SHARDCHANNELS",-2,   &[PubSub, Loading, Stale],  KeySpec::None, shardchannels).since("7.0.0"),
    Command::control("SHARDNUMSUB",  -2,   &[PubSub, Loading, Stale],  KeySpec::None, shardnumsub).since("7.0.0"),
];

/// `PSUBSCRIBE pattern [pattern ...]`: a push for each, as SUBSCRIBE.
fn psubscribe(call: &mut ControlCall<'_>) -> CommandResult {
    begin(call, Topic::Pattern, "psubscribe")
}

/// `PUBLISH channel message`: replies with the number of deliveries, to subscribers of the channel and of patterns that match it.
fn publish(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, channel, message] = call.words()?;
    tell_of_earlier_changes(call);
    Ok(Reply::count(call.engine.publish(channel, message)))
}

/// A script's events wait for its end, unless it sends a message itself: that one comes behind them.
fn tell_of_earlier_changes(call: &mut ControlCall<'_>) {
    call.engine.publish_events();
}

/// `PUNSUBSCRIBE [pattern ...]`: a push for each, as UNSUBSCRIBE.
fn punsubscribe(call: &mut ControlCall<'_>) -> CommandResult {
    end(call, Topic::Pattern, "punsubscribe")
}

/// `SPUBLISH channel message`: replies with the number of subscribers of the shard channel.
fn spublish(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, channel, message] = call.words()?;
    tell_of_earlier_changes(call);
    Ok(Reply::count(call.engine.publish_to(
        Topic::Shard,
        channel,
        message,
    )))
}

/// `SSUBSCRIBE channel [channel ...]`: a push for each, as SUBSCRIBE, counting shard channels alone.
fn ssubscribe(call: &mut ControlCall<'_>) -> CommandResult {
    begin(call, Topic::Shard, "ssubscribe")
}

/// `SUBSCRIBE channel [channel ...]`: a push for each: `subscribe`, the channel, the number of channels and patterns subscribed.
///
/// Errors: from a script.
fn subscribe(call: &mut ControlCall<'_>) -> CommandResult {
    begin(call, Topic::Channel, "subscribe")
}

/// `SUNSUBSCRIBE [channel ...]`: a push for each, as UNSUBSCRIBE.
fn sunsubscribe(call: &mut ControlCall<'_>) -> CommandResult {
    end(call, Topic::Shard, "sunsubscribe")
}

/// `UNSUBSCRIBE [channel ...]`: a push for each, subscribed or not; without channels for all that are, or one with null.
fn unsubscribe(call: &mut ControlCall<'_>) -> CommandResult {
    end(call, Topic::Channel, "unsubscribe")
}

fn begin(call: &mut ControlCall<'_>, topic: Topic, kind: &str) -> CommandResult {
    // For the others Redis makes an exception inside of MULTI.
    if call.caller == Caller::Script || topic == Topic::Shard && call.caller == Caller::Exec {
        let name = call.row.name();
        return Err(CommandError::custom(format!(
            "ERR {name} isn't allowed for a DENY BLOCKING client"
        )));
    }
    let mut pushes = Vec::new();
    for name in call.args().rest() {
        call.engine.pubsub.subscribe(topic, call.session, name);
        pushes.push(change(call, topic, kind, Reply::bulk(name)));
    }
    Ok(Reply::Several(pushes))
}

fn end(call: &mut ControlCall<'_>, topic: Topic, kind: &str) -> CommandResult {
    let args = call.args();
    let names = if args.is_empty() {
        call.engine.pubsub.names(topic, call.session)
    } else {
        args.rest().map(Blob::from).collect()
    };
    let mut pushes = Vec::new();
    for name in names {
        call.engine.pubsub.unsubscribe(topic, call.session, &name);
        pushes.push(change(call, topic, kind, Reply::Bulk(name)));
    }
    if pushes.is_empty() {
        pushes.push(change(call, topic, kind, Reply::Null));
    }
    Ok(Reply::Several(pushes))
}

/// The push that tells of a subscription's begin or end.
fn change(call: &ControlCall<'_>, topic: Topic, kind: &str, name: Reply) -> Reply {
    let count = |topic| call.engine.pubsub.count(topic, call.session);
    let count = match topic {
        Topic::Channel | Topic::Pattern => count(Topic::Channel) + count(Topic::Pattern),
        Topic::Shard => count(Topic::Shard),
    };
    Reply::Push(vec![Reply::bulk(kind), name, Reply::count(count)])
}

/// `PUBSUB CHANNELS [pattern]`: replies with the channels that somebody subscribes to by name.
fn channels(call: &mut ControlCall<'_>) -> CommandResult {
    active(call, Topic::Channel)
}

/// `PUBSUB NUMPAT`: replies with the number of patterns that somebody subscribes to.
fn numpat(call: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::count(
        call.engine.pubsub.active(Topic::Pattern).count(),
    ))
}

/// `PUBSUB NUMSUB [channel ...]`: replies with each channel and its number of subscribers, in one flat array.
fn numsub(call: &mut ControlCall<'_>) -> CommandResult {
    numbers(call, Topic::Channel)
}

/// `PUBSUB SHARDCHANNELS [pattern]`: as PUBSUB CHANNELS, of shard channels.
fn shardchannels(call: &mut ControlCall<'_>) -> CommandResult {
    active(call, Topic::Shard)
}

/// `PUBSUB SHARDNUMSUB [channel ...]`: as PUBSUB NUMSUB, of shard channels.
fn shardnumsub(call: &mut ControlCall<'_>) -> CommandResult {
    numbers(call, Topic::Shard)
}

fn active(call: &mut ControlCall<'_>, topic: Topic) -> CommandResult {
    let mut args = call.args();
    let pattern = args.next_if_any();
    if !args.is_empty() {
        return Err(subcommand_syntax(call));
    }
    let names = call.engine.pubsub.active(topic).map(|(name, _)| name);
    let wanted =
        names.filter(|name| pattern.is_none_or(|pattern| glob::matches(pattern, name, false)));
    Ok(Reply::bulks(wanted))
}

fn numbers(call: &mut ControlCall<'_>, topic: Topic) -> CommandResult {
    let pubsub = &call.engine.pubsub;
    let pairs = call.args().rest().flat_map(|name| {
        [
            Reply::bulk(name),
            Reply::count(pubsub.subscribers(topic, name).len()),
        ]
    });
    Ok(Reply::Array(pairs.collect()))
}

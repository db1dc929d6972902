//! What is refused before Redis is asked.

use crate::{Commit, Event, Execution, Rejection, Settings, StoreError, TimerOp, Version, codec};

/// Refuses an id of an execution that could share a key or a timer with another.
pub fn execution_id(settings: &Settings, what: &'static str, id: &str) -> Result<(), StoreError> {
    if settings.is_strict() && id.contains('\0') {
        return Err(StoreError::Invalid {
            what,
            reason: Rejection::Nul,
        });
    }
    if settings.is_strict() && id.starts_with("seq:") {
        return Err(StoreError::Invalid {
            what,
            reason: Rejection::Reserved,
        });
    }
    Ok(())
}

/// Refuses a time that Redis refuses in the middle of a transaction (NaN) or that never comes (infinite).
pub fn time(what: &'static str, seconds: f64) -> Result<(), StoreError> {
    if seconds.is_finite() {
        Ok(())
    } else {
        Err(StoreError::Invalid {
            what,
            reason: Rejection::NotFinite,
        })
    }
}

/// Refuses a present that is no number: everything would be due, or nothing.
pub fn present(now_s: f64) -> Result<(), StoreError> {
    if now_s.is_nan() {
        return Err(StoreError::Invalid {
            what: "present time",
            reason: Rejection::NotFinite,
        });
    }
    Ok(())
}

/// Refuses nesting that the Python store could not read back.
pub fn depth(what: &'static str, levels: usize) -> Result<(), StoreError> {
    let readable = levels <= codec::WRITE_DEPTH_MAX;
    if readable {
        Ok(())
    } else {
        Err(StoreError::Invalid {
            what,
            reason: Rejection::TooDeep,
        })
    }
}

/// The version that a commit of this one creates.
pub fn next_version(version: Version) -> Result<Version, StoreError> {
    version.next().ok_or(StoreError::Invalid {
        what: "version",
        reason: Rejection::VersionAtEdge,
    })
}

/// Refuses the version of a document that was stored before.
pub fn is_new(version: Version) -> Result<(), StoreError> {
    if version == Version::NEW {
        Ok(())
    } else {
        Err(StoreError::Invalid {
            what: "version",
            reason: Rejection::NotNew,
        })
    }
}

/// Refuses an execution that readers would not read.
pub fn execution(execution: &Execution) -> Result<(), StoreError> {
    depth("execution", codec::execution_depth(execution))?;
    if execution.priority > codec::PRIORITY_MAX {
        return Err(StoreError::Invalid {
            what: "priority",
            reason: Rejection::OutOfRange,
        });
    }
    execution
        .deferred
        .iter()
        .try_for_each(|deferred| event("deferred event", deferred))?;
    [
        execution.created_at,
        execution.updated_at,
        execution.finished_at,
        execution.expires_at,
    ]
    .into_iter()
    .flatten()
    .try_for_each(|seconds| time("time of an execution", seconds))
}

/// Refuses effects that can not be stored without breaking a guarantee.
pub fn commit(settings: &Settings, commit: &Commit) -> Result<(), StoreError> {
    if settings.is_strict() && commit.processed_event_id.as_deref() == Some("") {
        return Err(StoreError::Invalid {
            what: "processed event id",
            reason: Rejection::Empty,
        });
    }
    for emit in &commit.emits {
        execution_id(
            settings,
            "target id",
            emit.target.as_deref().unwrap_or_default(),
        )?;
        if settings.is_strict() && emit.event.id.is_empty() {
            return Err(StoreError::Invalid {
                what: "event id",
                reason: Rejection::Empty,
            });
        }
        event("event", &emit.event)?;
    }
    for timer in &commit.timers {
        if let TimerOp::Schedule { fire_at_s, .. } = timer {
            time("time of a timer", *fire_at_s)?;
        }
    }
    for spawn in &commit.spawns {
        execution_id(settings, "child id", &spawn.child_id)?;
        depth("spawn context", 1 + codec::object_depth(&spawn.context))?;
    }
    commit.trace.as_ref().map_or(Ok(()), |step| {
        depth("trace step", codec::object_depth(step))
    })
}

/// Refuses an event that could not be read back, or not be told from another.
pub(crate) fn event_to_publish(settings: &Settings, event: &Event) -> Result<(), StoreError> {
    if settings.is_strict() && event.id.is_empty() {
        return Err(StoreError::Invalid {
            what: "event id",
            reason: Rejection::Empty,
        });
    }
    self::event("event", event)
}

fn event(what: &'static str, event: &Event) -> Result<(), StoreError> {
    depth(what, codec::event_depth(event))?;
    let times = [&event.created_time, &event.received_time];
    if times.into_iter().flatten().all(|time| is_datetime(time)) {
        return Ok(());
    }
    Err(StoreError::Invalid {
        what: "time of an event",
        reason: Rejection::Malformed,
    })
}

/// Whether a text is `YYYY-MM-DDThh:mm:ss`, with or without a fraction and a zone. A day that the month does not have is
/// not looked for.
fn is_datetime(text: &str) -> bool {
    let Some((moment, rest)) = text.split_at_checked(19) else {
        return false;
    };
    let shape = moment.bytes().zip(*b"0000-00-00T00:00:00");
    if !shape.into_iter().all(|(byte, form)| {
        if form == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == form
        }
    }) {
        return false;
    }
    let zone = rest.strip_prefix('.').map_or(rest, |fraction| {
        fraction.trim_start_matches(|c: char| c.is_ascii_digit())
    });
    if rest.starts_with('.') && !(2..=7).contains(&(rest.len() - zone.len())) {
        return false;
    }
    let part = |range: std::ops::Range<usize>| {
        moment
            .get(range)
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(99)
    };
    let in_range = (1..=12).contains(&part(5..7)) && (1..=31).contains(&part(8..10));
    let in_range = in_range && part(11..13) < 24 && part(14..16) < 60 && part(17..19) < 60;
    in_range && (zone.is_empty() || zone == "Z" || is_offset(zone))
}

fn is_offset(zone: &str) -> bool {
    let form = zone.bytes().zip(*b"+00:00").all(|(byte, form)| match form {
        b'+' => matches!(byte, b'+' | b'-'),
        b':' => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    form && zone.len() == 6
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::op::Writes;
    use crate::{SpawnIntent, Strictness};

    fn deep(levels: usize) -> Map<String, serde_json::Value> {
        let mut map = Map::new();
        map.insert(
            "x".to_owned(),
            (0..levels).fold(json!(0), |inner, _| json!([inner])),
        );
        map
    }

    fn reason(
        settings: &Settings,
        execution: &Execution,
        input: &Commit,
    ) -> Option<(&'static str, Rejection)> {
        match Writes::new(settings, execution, input) {
            Ok(_) => None,
            Err(StoreError::Invalid { what, reason }) => Some((what, reason)),
            Err(error) => panic!("{error}"),
        }
    }

    fn exe() -> Execution {
        Execution::new("a", "d")
    }

    fn at(version: i64) -> Execution {
        Execution {
            version: Version::new(version),
            ..exe()
        }
    }

    fn spawn(id: &str, levels: usize) -> SpawnIntent {
        SpawnIntent {
            context: deep(levels),
            ..SpawnIntent::new(id, "")
        }
    }

    /// An execution, a commit, and what is refused of them.
    type Case = (Execution, Commit, Option<(&'static str, Rejection)>);

    fn check(cases: impl IntoIterator<Item = Case>) {
        for (execution, input, expected) in cases {
            let found = reason(&Settings::default(), &execution, &input);
            assert_eq!(found, expected, "{} {input:?}", execution.id);
        }
    }

    #[test]
    fn ids_and_times_that_break_a_guarantee_are_named() {
        let nul = |what| Some((what, Rejection::Nul));
        let time = Some(("time of a timer", Rejection::NotFinite));
        let empty = |what| Some((what, Rejection::Empty));
        let timer = |time| Commit::new().timer(TimerOp::schedule("p", time));
        let emit = |target, id| Commit::new().emit(target, Event::new(id, "k"));
        check(vec![
            (exe(), Commit::for_event("e"), None),
            (Execution::new("", "d"), Commit::new(), None),
            (exe(), Commit::for_event("nul\0"), None),
            (
                Execution::new("a\0", "d"),
                Commit::new(),
                nul("execution id"),
            ),
            (
                Execution::new("seq:a", "d"),
                Commit::new(),
                Some(("execution id", Rejection::Reserved)),
            ),
            (exe(), Commit::for_event(""), empty("processed event id")),
            (exe(), emit(Some("t\0"), "e"), nul("target id")),
            (exe(), emit(None, ""), empty("event id")),
            (exe(), timer(f64::NAN), time),
            (exe(), timer(f64::INFINITY), time),
            (exe(), Commit::new().timer(TimerOp::cancel("p\0")), None),
            (exe(), Commit::new().spawn(spawn("c\0", 0)), nul("child id")),
        ]);
    }

    #[test]
    fn depths_priorities_and_versions_have_their_last_good_value() {
        let too_deep = |what| Some((what, Rejection::TooDeep));
        let edge = Some(("version", Rejection::VersionAtEdge));
        let nested = |levels| Execution {
            context: deep(levels),
            ..exe()
        };
        let urgent = |priority| Execution { priority, ..exe() };
        check(vec![
            (exe(), Commit::new().spawn(spawn("c", 197)), None),
            (
                exe(),
                Commit::new().spawn(spawn("c", 198)),
                too_deep("spawn context"),
            ),
            (exe(), Commit::new().trace(deep(198)), None),
            (
                exe(),
                Commit::new().trace(deep(199)),
                too_deep("trace step"),
            ),
            (nested(197), Commit::new(), None),
            (nested(198), Commit::new(), too_deep("execution")),
            (urgent(4), Commit::new(), None),
            (
                urgent(5),
                Commit::new(),
                Some(("priority", Rejection::OutOfRange)),
            ),
            (at((1 << 53) - 2), Commit::new(), None),
            (at((1 << 53) - 1), Commit::new(), edge),
            (at(i64::MAX), Commit::new(), edge),
        ]);
    }

    #[test]
    fn the_lenient_mode_takes_the_ids_that_python_takes_and_nothing_else() {
        let settings = Settings::default().strictness(Strictness::Lenient);
        let commit = Commit::for_event("")
            .emit(Some("t\0"), Event::new("", "k"))
            .spawn(SpawnIntent::new("\0", ""));
        assert_eq!(
            reason(&settings, &Execution::new("seq:a\0", "d"), &commit),
            None
        );
        let nan = Commit::new().timer(TimerOp::schedule("p", f64::NAN));
        assert!(reason(&settings, &Execution::new("a", "d"), &nan).is_some());
    }

    #[test]
    fn times_of_events_have_the_form_that_readers_take() {
        for good in [
            "2026-01-02T03:04:05",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.1",
            "2026-01-02T03:04:05.123456+02:00",
            "2026-01-02T03:04:05-03:30",
        ] {
            assert!(is_datetime(good), "{good}");
        }
        for bad in [
            "",
            "now",
            "2026-01-02",
            "2026-01-02 03:04:05",
            "2026-13-02T03:04:05",
            "2026-01-02T24:04:05",
            "2026-01-02T03:04:05.",
            "2026-01-02T03:04:05.1234567",
            "2026-01-02T03:04:05+0200",
            "2026-01-02T03:04:05z",
            "2026-01-02T03:04:0\u{e9}",
        ] {
            assert!(!is_datetime(bad), "{bad}");
        }
    }
}

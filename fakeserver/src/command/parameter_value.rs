//! What the parameters of CONFIG accept as values, by kind; errors are the texts that CONFIG SET answers.

use std::fmt::Write;

use crate::config::Config;
use crate::output_limits::{OutputLimit, OutputLimits};
use crate::value::{Blob, number};

pub(super) fn out_of_range(min: impl std::fmt::Display, max: impl std::fmt::Display) -> String {
    format!("argument must be between {min} and {max} inclusive")
}

/// Reads a size with an optional unit (util.c, `memtoull`): `k` is 1000, `kb` is 1024.
pub(super) fn memory(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let unit: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1024,
        b"m" => 1_000_000,
        b"mb" => 1024 * 1024,
        b"g" => 1_000_000_000,
        b"gb" => 1024 * 1024 * 1024,
        _ => return None,
    };
    // As C's `strtoull`: nothing is 0, too much is the maximum; and the multiplication wraps.
    let digit =
        |value: u64, digit: &u8| value.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let number = number.iter().try_fold(0, digit).unwrap_or(u64::MAX);
    Some(number.wrapping_mul(unit))
}

pub(super) fn memory_setting(
    text: &[u8],
    (min, max): (u64, u64),
    percent: bool,
) -> Result<Blob, String> {
    if percent && let Some(number) = text.strip_suffix(b"%") {
        let number = number::parse_integer(number).filter(|number| *number >= 0);
        let number = number.ok_or("argument must be a memory or percent value")?;
        if number > 100 {
            return Err("percentage argument must be less or equal to 100".to_owned());
        }
        return Ok(Blob::from(text));
    }
    let kinds = if percent {
        "memory or percent"
    } else {
        "memory"
    };
    let value = memory(text).ok_or_else(|| format!("argument must be a {kinds} value"))?;
    if (min..=max).contains(&value) {
        Ok(Blob::from(value.to_string()))
    } else {
        Err(out_of_range(min, max))
    }
}

pub(super) fn choice(choices: &[&'static str], text: &[u8]) -> Result<&'static str, String> {
    let found = choices
        .iter()
        .find(|choice| choice.as_bytes().eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| {
        format!(
            "argument(s) must be one of the following: {}",
            choices.join(", ")
        )
    })
}

/// Several words of a list, printed in the list's order; the first of the list stands for none.
pub(super) fn several_choices(choices: &[&'static str], words: &[&[u8]]) -> Result<Blob, String> {
    let mut chosen = Vec::new();
    for word in words {
        chosen.push(choice(choices, word)?);
    }
    let default = choices.first().copied().unwrap_or_default();
    if chosen.is_empty() {
        choice(choices, b"")?;
    }
    if chosen.contains(&"save") && chosen.contains(&"nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned());
    }
    let set = choices
        .iter()
        .filter(|choice| **choice != default && chosen.contains(choice));
    let set: Vec<_> = set.copied().collect();
    Ok(Blob::from(if set.is_empty() {
        default.to_owned()
    } else {
        set.join(" ")
    }))
}

pub(super) fn save_points(words: &[&[u8]]) -> Result<Blob, String> {
    let invalid = || "Invalid save parameters".to_owned();
    let mut kept = Vec::new();
    for pair in words.chunks(2) {
        let [seconds, changes] = pair else {
            return Err(invalid());
        };
        let seconds = number::parse_integer(seconds).filter(|seconds| *seconds >= 1);
        let changes = number::parse_integer(changes).filter(|changes| *changes >= 0);
        let (Some(seconds), Some(changes)) = (seconds, changes) else {
            return Err(invalid());
        };
        kept.push(format!("{seconds} {changes}"));
    }
    Ok(Blob::from(kept.join(" ")))
}

/// Limits by class of client: those that `words` name replace what is set.
pub(super) fn output_limits(config: &Config, words: &[&[u8]]) -> Result<OutputLimits, String> {
    let mut limits = config.client_output_buffer_limit;
    if !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    for group in words.chunks(4) {
        let [class, hard, soft, seconds] = group else {
            continue;
        };
        let limit = limits
            .class_mut(class)
            .ok_or("Invalid client class specified in buffer limit configuration.")?;
        let seconds = number::parse_integer(seconds).filter(|seconds| *seconds >= 0);
        let (Some(hard), Some(soft), Some(seconds)) = (memory(hard), memory(soft), seconds) else {
            return Err(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration."
                    .to_owned(),
            );
        };
        *limit = OutputLimit {
            hard,
            soft,
            soft_seconds: seconds as u64,
        };
    }
    Ok(limits)
}

pub(super) fn percentiles(words: &[&[u8]]) -> Result<Blob, String> {
    let mut text = String::new();
    for word in words {
        let value: f64 = std::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse().ok())
            .ok_or("Invalid latency-tracking-info-percentiles parameters")?;
        if !(0.0..=100.0).contains(&value) {
            return Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                    .to_owned(),
            );
        }
        let blank = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{blank}{value}");
    }
    Ok(Blob::from(text))
}

pub(super) fn three_scores(words: &[&[u8]]) -> Result<Blob, String> {
    if words.len() != 3 {
        return Err("wrong number of arguments".to_owned());
    }
    let mut scores = Vec::new();
    for word in words {
        let score = number::parse_integer(word).filter(|score| (-2000..=2000).contains(score));
        scores.push(
            score
                .ok_or("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")?
                .to_string(),
        );
    }
    Ok(Blob::from(scores.join(" ")))
}

pub(super) fn title_template(text: &[u8]) -> Result<Blob, String> {
    const VARIABLES: [&[u8]; 7] = [
        b"title",
        b"listen-addr",
        b"server-mode",
        b"port",
        b"tls-port",
        b"unixsocket",
        b"config-file",
    ];
    let known = |part: &[u8]| {
        let name = part.split(|byte| *byte == b'}').next().unwrap_or_default();
        name.len() < part.len() && VARIABLES.contains(&name)
    };
    if text.split(|byte| *byte == b'{').skip(1).all(known) {
        Ok(Blob::from(text))
    } else {
        Err("template format is invalid or contains unknown variables".to_owned())
    }
}

pub(super) fn hostname(text: &[u8]) -> Result<Blob, String> {
    if text.len() >= 256 {
        return Err("Hostnames must be less than 256 characters".to_owned());
    }
    if text
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte))
    {
        Ok(Blob::from(text))
    } else {
        Err("Hostnames may only contain alphanumeric characters, hyphens or dots".to_owned())
    }
}

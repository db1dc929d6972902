//! The parameters of CONFIG: names, kinds and defaults as redis-server 7.0.15 has them (recorded in `data/config.json`), and how
//! a text becomes a value.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::parameter_value::{
    choice, hostname, memory, memory_setting, out_of_range, output_limits, percentiles,
    save_points, several_choices, three_scores, title_template,
};
use super::recorded;
use crate::config::{Config, Permission};
use crate::keyspace::Classes;
use crate::value::{Blob, number};

/// One name that CONFIG GET and CONFIG SET know.
#[derive(Debug)]
pub(super) struct Parameter {
    /// The name as it is asked for, in lower case.
    pub name: &'static str,
    /// The name of the value behind it: `slave-priority` is another name of `replica-priority`.
    target: &'static str,
    kind: Kind,
    default: &'static str,
    /// Found by its exact name only.
    pub is_hidden: bool,
}

/// What a parameter's text may be.
#[derive(Debug)]
enum Kind {
    Immutable,
    Protected,
    YesNo,
    Integer {
        min: i64,
        max: i64,
        clamp: (i64, i64),
    },
    Memory {
        min: u64,
        max: u64,
        percent: bool,
    },
    Choice(Vec<&'static str>),
    Choices(Vec<&'static str>),
    Text,
    EventClasses,
    SavePoints,
    OutputLimits,
    Percentiles,
    ThreeScores,
    TitleTemplate,
    Hostname,
    /// The socket is the driver's, who has bound it for good.
    Addresses,
}

/// All names, in order.
static PARAMETERS: LazyLock<BTreeMap<&'static str, Parameter>> = LazyLock::new(|| {
    let table: &'static _ = Box::leak(Box::new(recorded::parse(include_str!("data/config.json"))));
    let entry = |name: &'static String| {
        let own = table.get(name)?;
        let target = own.get("alias").and_then(Value::as_str).unwrap_or(name);
        let fields = table.get(target)?;
        let parameter = Parameter {
            name,
            target,
            kind: Kind::of(fields),
            is_hidden: fields.get("hidden").is_some(),
            default: fields
                .get("default")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        };
        Some((name.as_str(), parameter))
    };
    table.keys().filter_map(entry).collect()
});

/// The parameter of a name, in any case.
pub(super) fn parameter(name: &[u8]) -> Option<&'static Parameter> {
    PARAMETERS.get(
        std::str::from_utf8(name)
            .ok()?
            .to_ascii_lowercase()
            .as_str(),
    )
}

/// All parameters by name.
pub(super) fn parameters() -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS.values()
}

/// The value of a recorded or typed setting, for INFO.
pub(crate) fn setting(config: &Config, name: &str) -> Blob {
    match PARAMETERS.get(name) {
        Some(parameter) => parameter.get(config),
        None => Blob::default(),
    }
}

impl Kind {
    fn of(fields: &'static Value) -> Kind {
        let signed = |name| fields.get(name).and_then(Value::as_i64);
        let unsigned = |name| fields.get(name).and_then(Value::as_u64);
        let choices = || {
            let choices = fields.get("choices").and_then(Value::as_array);
            choices
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect()
        };
        let (min, max) = (
            signed("min").unwrap_or(i64::MIN),
            signed("max").unwrap_or(i64::MAX),
        );
        let clamp = |at: usize| {
            fields
                .get("clamp")
                .and_then(|clamp| clamp.get(at)?.as_i64())
        };
        match fields
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "protected" => Kind::Protected,
            "yes-no" => Kind::YesNo,
            "integer" => Kind::Integer {
                min,
                max,
                clamp: (clamp(0).unwrap_or(min), clamp(1).unwrap_or(max)),
            },
            kind @ ("memory" | "memory-or-percent") => Kind::Memory {
                min: unsigned("min").unwrap_or(0),
                max: unsigned("max").unwrap_or(u64::MAX),
                percent: kind != "memory",
            },
            "choice" => Kind::Choice(choices()),
            "choices" => Kind::Choices(choices()),
            "text" => Kind::Text,
            "event-classes" => Kind::EventClasses,
            "save-points" => Kind::SavePoints,
            "output-limits" => Kind::OutputLimits,
            "percentiles" => Kind::Percentiles,
            "three-scores" => Kind::ThreeScores,
            "title-template" => Kind::TitleTemplate,
            "hostname" => Kind::Hostname,
            "addresses" => Kind::Addresses,
            _ => Kind::Immutable,
        }
    }
}

impl Parameter {
    /// Why CONFIG SET may not touch the parameter at all.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Immutable => Some("can't set immutable config"),
            Kind::Protected => Some("can't set protected config"),
            _ => None,
        }
    }

    /// The value as CONFIG GET prints it.
    pub(super) fn get(&self, config: &Config) -> Blob {
        if let Some(text) = typed_text(config, self.target) {
            return text;
        }
        let other = config.others.get(self.target).cloned();
        other.unwrap_or_else(|| Blob::from(self.default))
    }

    /// Whether another name stands for the same value.
    pub(super) fn is_same(&self, other: &Parameter) -> bool {
        self.name == other.name
    }

    /// Sets the value from a text. Errors: the text behind `CONFIG SET failed (...) - `.
    pub(super) fn set(&self, config: &mut Config, text: &[u8]) -> Result<(), String> {
        let value = self.parse(config, text)?;
        let number = number::parse_integer(&value);
        if let (Some(field), Some(number)) = (integer_field(config, self.target), number) {
            *field = number;
            return Ok(());
        }
        match self.target {
            // Parsing has set it: classes that the text does not name keep their limits.
            "client-output-buffer-limit" => {}
            "latency-tracking" => config.latency_tracking = value.as_bytes() == b"yes",
            "maxmemory" => config.maxmemory = memory(&value).unwrap_or(0),
            "requirepass" => config.requirepass = value,
            "notify-keyspace-events" => {
                config.notify_keyspace_events = Classes::parse(&value).unwrap_or_default();
            }
            target => {
                config.others.insert(target, value);
            }
        }
        Ok(())
    }

    /// The text in the form in which it is kept.
    fn parse(&self, config: &mut Config, text: &[u8]) -> Result<Blob, String> {
        let words = || -> Vec<&[u8]> {
            // Redis splits at every single blank, and nothing into nothing.
            let words = text.split(|byte| *byte == b' ');
            words.take_while(|_| !text.is_empty()).collect()
        };
        match &self.kind {
            Kind::Immutable | Kind::Protected => Err(self.refusal().unwrap_or_default().to_owned()),
            Kind::YesNo if text.eq_ignore_ascii_case(b"yes") => Ok(Blob::from("yes")),
            Kind::YesNo if text.eq_ignore_ascii_case(b"no") => Ok(Blob::from("no")),
            Kind::YesNo => Err("argument must be 'yes' or 'no'".to_owned()),
            Kind::Integer { min, max, clamp } => {
                let value = number::parse_integer(text)
                    .ok_or("argument couldn't be parsed into an integer")?;
                if !(*min..=*max).contains(&value) {
                    return Err(out_of_range(min, max));
                }
                self.bound_socket(config, value)?;
                Ok(Blob::from(value.clamp(clamp.0, clamp.1).to_string()))
            }
            Kind::Memory { min, max, percent } => memory_setting(text, (*min, *max), *percent),
            Kind::Choice(choices) => choice(choices, text).map(Blob::from),
            Kind::Choices(choices) => several_choices(choices, &words()),
            Kind::Text => Ok(Blob::from(text)),
            Kind::EventClasses => match Classes::parse(text) {
                Some(_) => Ok(Blob::from(text)),
                None => Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
            },
            Kind::SavePoints => save_points(&words()),
            Kind::OutputLimits => {
                let limits = output_limits(config, &words())?;
                config.client_output_buffer_limit = limits;
                Ok(Blob::from(limits.to_string()))
            }
            Kind::Percentiles => percentiles(&words()),
            Kind::ThreeScores => three_scores(&words()),
            Kind::TitleTemplate => title_template(text),
            Kind::Hostname => hostname(text),
            Kind::Addresses if *text == *self.get(config) => Ok(Blob::from(text)),
            Kind::Addresses => Err("Failed to bind to specified addresses.".to_owned()),
        }
    }

    /// Ports are the driver's: another one cannot be listened on.
    fn bound_socket(&self, config: &Config, port: i64) -> Result<(), String> {
        let is_port = matches!(self.target, "port" | "tls-port");
        if is_port && self.get(config).as_bytes() != port.to_string().as_bytes() {
            return Err("Unable to listen on this port. Check server logs.".to_owned());
        }
        Ok(())
    }
}

/// Settings that the engine reads as numbers.
fn integer_field<'a>(config: &'a mut Config, name: &str) -> Option<&'a mut i64> {
    Some(match name {
        "busy-reply-threshold" => &mut config.busy_reply_threshold,
        "client-query-buffer-limit" => &mut config.client_query_buffer_limit,
        "hash-max-listpack-entries" => &mut config.hash_max_listpack_entries,
        "hash-max-listpack-value" => &mut config.hash_max_listpack_value,
        "hll-sparse-max-bytes" => &mut config.hll_sparse_max_bytes,
        "latency-monitor-threshold" => &mut config.latency_monitor_threshold,
        "list-compress-depth" => &mut config.list_compress_depth,
        "list-max-listpack-size" => &mut config.list_max_listpack_size,
        "maxclients" => &mut config.maxclients,
        "min-replicas-max-lag" => &mut config.min_replicas_max_lag,
        "min-replicas-to-write" => &mut config.min_replicas_to_write,
        "proto-max-bulk-len" => &mut config.proto_max_bulk_len,
        "set-max-intset-entries" => &mut config.set_max_intset_entries,
        "slowlog-log-slower-than" => &mut config.slowlog_log_slower_than,
        "slowlog-max-len" => &mut config.slowlog_max_len,
        "stream-node-max-bytes" => &mut config.stream_node_max_bytes,
        "stream-node-max-entries" => &mut config.stream_node_max_entries,
        "timeout" => &mut config.timeout,
        "zset-max-listpack-entries" => &mut config.zset_max_listpack_entries,
        "zset-max-listpack-value" => &mut config.zset_max_listpack_value,
        _ => return None,
    })
}

/// Settings that the engine honours, as text.
fn typed_text(config: &Config, name: &str) -> Option<Blob> {
    // The fields are found by a function that also writes them; a copy of the settings is cheap where CONFIG is concerned.
    if let Some(field) = integer_field(&mut config.clone(), name) {
        return Some(Blob::from(field.to_string()));
    }
    Some(match name {
        "client-output-buffer-limit" => Blob::from(config.client_output_buffer_limit.to_string()),
        "databases" => Blob::from(config.databases.to_string()),
        "enable-debug-command" => Blob::from(match config.enable_debug_command {
            Permission::No => "no",
            Permission::Local => "local",
            Permission::Yes => "yes",
        }),
        "latency-tracking" if config.latency_tracking => Blob::from("yes"),
        "latency-tracking" => Blob::from("no"),
        "maxmemory" => Blob::from(config.maxmemory.to_string()),
        "notify-keyspace-events" => Blob::from(config.notify_keyspace_events.to_string()),
        "port" => Blob::from(config.port.to_string()),
        "requirepass" => config.requirepass.clone(),
        _ => return None,
    })
}

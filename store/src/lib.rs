//! Durable execution store over Redis.

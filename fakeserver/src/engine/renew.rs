//! An engine that begins again: schedules run one after the other on the same.

use super::*;

impl Engine {
    /// As newly made with the settings that it has, scripts apart, but faster: what takes memory stays.
    pub(crate) fn renew(&mut self, now: Timestamp) {
        // All fields by name, so that none is forgotten.
        let Engine {
            keyspace,
            config,
            rng,
            sessions,
            queues,
            resumed,
            exec_pushes,
            pubsub,
            monitors,
            monitor_feed,
            pause,
            stats,
            slowlog,
            out_of_memory,
            eviction,
            latency_events,
            control,
            acl,
            sleep,
            idle_check_at,
            saving,
            links,
            shutdown,
            hang_ups,
            ready,
            now: present,
            started_at,
            scripts: _,
            calls,
            running,
            interlude,
            session_count,
            rooms: _,
        } = self;
        keyspace.renew();
        *rng = fastrand::Rng::with_seed(config.seed);
        sessions.clear();
        *queues = WaitQueues::default();
        resumed.clear();
        *exec_pushes = None;
        *calls = calls.as_ref().map(|_| Calls::default());
        *pubsub = PubSub::default();
        monitors.clear();
        monitor_feed.clear();
        *pause = Pause::default();
        stats.renew();
        *slowlog = SlowLog::default();
        *out_of_memory = false;
        *eviction = EvictionPool::default();
        *latency_events = LatencyEvents::default();
        *control = Control::new(config);
        *acl = Acl::new(config);
        *sleep = Sleep::default();
        *idle_check_at = None;
        *saving = Saving {
            at: now.seconds(),
            ..Saving::default()
        };
        *links = Links::default();
        *shutdown = false;
        *hang_ups = 0;
        ready.clear();
        *present = now;
        *started_at = now;
        *running = None;
        *interlude = None;
        *session_count = 0;
        self.schedule_idle_check();
    }
}

//! The one way of a request: lookup, checks in Redis' order, queue or call, consequences (server.c, `processCommand` and
//! `call`). All policy is read from the row's flags, none from a command's name.

use crate::acl::{Denial, Denied};
use crate::blocking::{Blocked, Wait};
use crate::command::{
    Access, Caller, ControlCall, Effects, Flag, Handler, ReadCall, Row, WriteCall, lookup,
};
use crate::engine::{Engine, OUTPUT_CHECK_MIN};
use crate::error::CommandError;
use crate::keyspace::{Acting, DbIndex};
use crate::resolve::{find, resolve_from};
use crate::session::{Queued, Session, SessionId};
use crate::value::Blob;
use crate::wire::{Protocol, Reply, Request};

/// Why a request is not executed.
enum Refusal {
    Error(CommandError),
    /// The client's user lacks a permission.
    Denied(&'static Row, Denial),
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Refusal {
        Refusal::Error(error)
    }
}

impl Engine {
    /// Runs a client's request, sends what it answers, and has all that follows from it done.
    pub(crate) fn run(&mut self, id: SessionId, request: &Request) {
        if request.is_empty() {
            return self.skip(id, 1);
        }
        if self.is_busy() {
            return self.run_amid_script(id, request);
        }
        self.keyspace.set_now(self.now);
        self.keyspace.acting = Acting {
            client: Some(id),
            ..Acting::default()
        };
        let reply = if self.control.faults.is_empty() {
            self.answer(id, request)
        } else {
            self.answer_or_fail(id, request)
        };
        // Redis publishes events while a command runs, so a client that listens hears some of them before its own reply.
        let reply = self.publish_around(id, reply);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.active_at = self.now.micros();
            session.send(reply);
            session.command_done();
            if session.output_len() >= OUTPUT_CHECK_MIN {
                self.check_output(id);
            }
        }
        self.pass_slept_time();
        self.after_command();
        self.end_caching(id, request);
        self.keyspace.acting = Acting::default();
    }

    /// A request without a word (so many of them) is not answered, but what was to last for one command ends with it (networking.c,
    /// `resetClient`).
    pub(crate) fn skip(&mut self, id: SessionId, count: usize) {
        // What ends with the next command has ended behind two of them, however many there are.
        for _ in 0..count.min(2) {
            self.end_caching(id, &Request::default());
            if let Some(session) = self.sessions.get_mut(&id) {
                session.command_done();
            }
        }
    }

    /// Runs a request while a script takes too long. What the script has done so far has its consequences when it ends, so
    /// there are none here.
    fn run_amid_script(&mut self, id: SessionId, request: &Request) {
        let db = self.keyspace.selected();
        let reply = self.answer(id, request);
        self.keyspace.select(db);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.send(reply);
            session.command_done();
        }
    }

    pub(crate) fn answer(&mut self, id: SessionId, request: &Request) -> Reply {
        let named = lookup(request.name());
        let admitted = resolve_from(named, request)
            .map_err(Refusal::from)
            .and_then(|row| self.admit(id, row, request).map(|()| row));
        let row = match admitted {
            Ok(row) => row,
            Err(_) if named.is_none() && self.is_administered_by(request) => {
                return self.administer(id, request);
            }
            Err(refusal) => {
                let error = self.explain(id, request, refusal);
                let error = self.reject(id, named, error);
                self.stats.rejected(find(request), &error);
                return Reply::Error(error);
            }
        };
        if self.holds_back(id, row, request) {
            self.postpone(id, request);
            return Reply::Nothing;
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return Reply::Nothing;
        };
        session.last_command = Some(row);
        if let Some(transaction) = &mut session.transaction
            && !row.has(Flag::NoQueue)
        {
            transaction.queue.push(Queued {
                row,
                request: request.clone(),
            });
            return Reply::simple("QUEUED");
        }
        self.call(id, row, request, Caller::Client)
    }

    /// An error before execution. Inside of MULTI it dooms the EXEC (multi.c, `flagTransaction`); of EXEC itself it discards the
    /// transaction and says so (`execCommandAbort`).
    fn reject(
        &mut self,
        id: SessionId,
        named: Option<&'static Row>,
        error: CommandError,
    ) -> CommandError {
        let discards = named.is_some_and(|row| row.has(Flag::EndsTransaction));
        if let Some(session) = self.sessions.get_mut(&id) {
            if discards {
                session.transaction = None;
            } else if let Some(transaction) = &mut session.transaction {
                transaction.dirty_exec = true;
            }
        }
        if !discards {
            return error;
        }
        self.keyspace.watch.unwatch(id);
        let text = error.to_bytes();
        let reason = text.strip_prefix(b"ERR ").unwrap_or(&text);
        let parts = [
            b"EXECABORT Transaction discarded because of: ".as_slice(),
            reason,
        ];
        CommandError::custom(parts.concat())
    }

    /// The error of a request that is refused; what a user was denied is noted.
    fn explain(&mut self, id: SessionId, request: &Request, refusal: Refusal) -> CommandError {
        let (row, denial) = match refusal {
            Refusal::Error(error) => return error,
            Refusal::Denied(row, denial) => (row, denial),
        };
        if let Some(session) = self.sessions.get_mut(&id) {
            session.last_command = Some(row);
        }
        let denied = Denied {
            context: self.context(id),
            ..Denied::new(row, request)
        };
        self.log_denial(id, denial, &denied);
        denial.error(row)
    }

    /// The checks that depend on the session, in Redis' order.
    fn admit(
        &mut self,
        id: SessionId,
        row: &'static Row,
        request: &Request,
    ) -> Result<(), Refusal> {
        // Of the script that makes the server busy, not of those who are told so.
        if !self.is_busy() {
            self.out_of_memory = self.config.maxmemory > 0 && self.lacks_memory();
            self.limit_caches();
        }
        let Some(session) = self.sessions.get(&id) else {
            return Ok(());
        };
        if row.has(Flag::Protected) {
            self.config.check_protected(row, &session.address)?;
        }
        let open = session.authenticated || self.acl.is_open();
        if !open && !row.has(Flag::NoAuth) {
            return Err(CommandError::NoAuth.into());
        }
        if session.transaction.is_some() && row.has(Flag::NoMulti) {
            return Err(CommandError::NotAllowedInTransaction.into());
        }
        if self.acl.is_restricting()
            && let Err(denial) = self.check_permission(id, row, request)
        {
            return Err(Refusal::Denied(row, denial));
        }
        if self.out_of_memory && !self.is_busy() && self.needs_memory(session, row, request) {
            return Err(CommandError::OutOfMemory.into());
        }
        if self.config.lacks_replicas() && self.may(session, row, request, |effects| effects.writes)
        {
            return Err(CommandError::NotEnoughReplicas.into());
        }
        if session.protocol == Protocol::Resp2
            && !row.has(Flag::Subscriber)
            && self.pubsub.is_subscriber(id)
        {
            return Err(CommandError::NotForSubscribers(row.full_name().into()).into());
        }
        match self.busy() {
            Some(busy) if !row.has(Flag::AllowBusy) => return Err(busy.into()),
            _ => {}
        }
        // Who looks on is a replica to Redis.
        let touches_keys = || {
            let may_change = |effects: &Effects| effects.writes || effects.replicates;
            row.has(Flag::ReadOnly) || self.may(session, row, request, may_change)
        };
        if self.monitors.contains(&id) && touches_keys() {
            return Err(
                CommandError::custom("ERR Replica can't interact with the keyspace").into(),
            );
        }
        Ok(())
    }

    /// Whether a command, or one of those that EXEC will run, may need more memory; a queue of any commands does.
    fn needs_memory(&self, session: &Session, row: &Row, request: &Request) -> bool {
        let queues = session.transaction.is_some() && !row.has(Flag::NoQueue);
        queues || self.may(session, row, request, |effects| effects.needs_memory)
    }

    /// Whether a command, or one of those that EXEC will run, does something.
    pub(crate) fn may(
        &self,
        session: &Session,
        row: &Row,
        request: &Request,
        something: fn(&Effects) -> bool,
    ) -> bool {
        let mut queued = session
            .transaction
            .iter()
            .filter(|_| row.has(Flag::EndsTransaction))
            .flat_map(|transaction| &transaction.queue);
        something(&row.effects(self, request))
            || queued.any(|queued| something(&queued.row.effects(self, &queued.request)))
    }

    /// Runs a command's handler and counts it; for EXEC's and scripts' commands too.
    pub(crate) fn call(
        &mut self,
        id: SessionId,
        row: &'static Row,
        request: &Request,
        caller: Caller,
    ) -> Reply {
        let monitored = !self.monitors.is_empty() && !row.has(Flag::Admin);
        // A script is shown in front of the commands that it calls.
        if monitored && row.has(Flag::SkipMonitor) {
            self.feed_monitors(id, row, request, caller);
        }
        let outer = std::mem::take(&mut self.sleep.taken);
        let reply = self.execute(id, row, request, caller);
        if self.keyspace.caches.is_some() && caller != Caller::Script {
            self.remember_keys(id, row, request);
        }
        let micros = std::mem::replace(&mut self.sleep.taken, outer);
        self.sleep.taken += micros;
        if caller == Caller::Script {
            self.note_call(request);
            // It answers the script, and the script's own reply comes behind everything.
            self.keyspace.take_placement();
        }
        self.stats.called(row, self.config.latency_tracking, micros);
        self.note_latency(row, micros);
        match &reply {
            Reply::Error(_) if std::mem::take(&mut self.stats.is_counted) => {
                self.stats.interrupted(row);
            }
            Reply::Error(error) => self.stats.failed(row, error),
            _ => {}
        }
        if monitored && !row.has(Flag::SkipMonitor) {
            self.feed_monitors(id, row, request, caller);
        }
        // Time stands still inside of a command, unless it sleeps.
        let is_slow = (0..=micros).contains(&self.config.slowlog_log_slower_than);
        if is_slow && !row.has(Flag::SkipSlowlog) && !self.is_blocked(id) {
            self.log_slow(id, (row, request), caller, micros);
        }
        reply
    }

    fn execute(
        &mut self,
        id: SessionId,
        row: &'static Row,
        request: &Request,
        caller: Caller,
    ) -> Reply {
        let db = self
            .sessions
            .get(&id)
            .map(|session| session.db)
            .unwrap_or_default();
        self.keyspace.select(db);
        self.keyspace.acting.is_inside = true;
        self.keyspace.acting.is_indirect = caller == Caller::Script;
        self.keyspace.begin_command();
        self.remove_due_keys_of(row, request);
        match row.handler() {
            Handler::Read(_) | Handler::Write(_) => {
                let (reply, wait) = self.call_on_keyspace(id, row, request, caller, None);
                match wait {
                    Some(wait) if caller == Caller::Client => {
                        self.block(id, db, row, request, wait, reply)
                    }
                    _ => reply,
                }
            }
            Handler::Control(handler) => {
                let now = self.keyspace.now();
                handler(&mut ControlCall {
                    row,
                    request,
                    engine: self,
                    session: id,
                    caller,
                    now,
                })
                .into()
            }
            // `resolve` never answers a container that was given a subcommand, and its arity asks for one.
            Handler::Container => Reply::Error(CommandError::WrongArity(row.full_name().into())),
        }
    }

    /// Runs a handler that sees the keyspace and nothing else, and can wait; `woken_by` is the key that woke it.
    fn call_on_keyspace(
        &mut self,
        id: SessionId,
        row: &'static Row,
        request: &Request,
        caller: Caller,
        woken_by: Option<&[u8]>,
    ) -> (Reply, Option<Wait>) {
        match row.handler() {
            Handler::Read(handler) => {
                let mut call = ReadCall {
                    row,
                    request,
                    keyspace: &self.keyspace,
                    config: &self.config,
                    rng: &mut self.rng,
                    now: self.keyspace.now(),
                    caller,
                    woken_by,
                    wait: None,
                };
                let reply = handler(&mut call).into();
                (reply, call.wait)
            }
            Handler::Write(handler) => self.call_write(id, row, request, handler, caller, woken_by),
            Handler::Control(_) | Handler::Container => (Reply::Nothing, None),
        }
    }

    fn call_write(
        &mut self,
        id: SessionId,
        row: &'static Row,
        request: &Request,
        handler: fn(&mut WriteCall<'_>) -> Result<Reply, CommandError>,
        caller: Caller,
        woken_by: Option<&[u8]>,
    ) -> (Reply, Option<Wait>) {
        let before = self.fingerprint(row, request);
        let dirty = self.keyspace.stats.dirty;
        let now = self.keyspace.now();
        let reads_any_key = !self.acl.is_restricting()
            || !row.has(Flag::MovableKeys)
            || self.may_read_any_key(id, row, request);
        let mut call = WriteCall {
            row,
            request,
            keyspace: &mut self.keyspace,
            config: &self.config,
            rng: &mut self.rng,
            now,
            caller,
            woken_by,
            reads_any_key,
            wait: None,
        };
        let reply = handler(&mut call).into();
        let wait = call.wait;
        debug_assert!(
            dirty != self.keyspace.stats.dirty || before == self.fingerprint(row, request),
            "{} changed a key and did not report it",
            row.full_name()
        );
        (reply, wait)
    }

    /// What the keys of a request hold, as text, in debug builds: a write that changes them without telling the keyspace would
    /// be a WATCH that never fires.
    fn fingerprint(&self, row: &'static Row, request: &Request) -> Vec<String> {
        if !cfg!(debug_assertions) {
            return Vec::new();
        }
        let keys = row.keys().positions(request, Access::Write);
        let keys = keys.iter().filter_map(|(at, _)| request.get(*at));
        let entries = keys.map(|key| self.keyspace.entry(key));
        // Large values would make debug builds crawl, and a fault shows on small ones just as well.
        let small = entries.filter(|entry| entry.is_none_or(|entry| entry.value().len() <= 64));
        small
            .map(|entry| format!("{:?}", entry.map(|entry| (entry.value(), entry.deadline()))))
            .collect()
    }

    /// Redis deletes a due key when a command looks it up (db.c, `expireIfNeeded`); the handlers never see one anyway.
    fn remove_due_keys_of(&mut self, row: &'static Row, request: &Request) {
        // While writes are paused nothing is deleted either; handlers never see a due key anyway.
        if self.keyspace.deadlines_len() == 0 || self.is_paused() {
            return;
        }
        row.keys().visit(request, Access::Read, |at, _| {
            if let Some(key) = request.get(at) {
                self.keyspace.remove_if_due(key);
            }
        });
    }

    /// Lets a client wait; `reply` is what it is answered when its time is over.
    pub(crate) fn block(
        &mut self,
        id: SessionId,
        db: DbIndex,
        row: &'static Row,
        request: &Request,
        wait: Wait,
        reply: Reply,
    ) -> Reply {
        let Some(session) = self.sessions.get_mut(&id) else {
            return Reply::Nothing;
        };
        let deadline = (wait.timeout_ms > 0).then(|| self.now.plus_millis(wait.timeout_ms));
        let blocked = Blocked {
            row,
            request: wait.rewritten.unwrap_or_else(|| request.clone()),
            db,
            keys: wait.keys,
            deadline,
            timeout_reply: wait.timeout_reply.unwrap_or(reply),
            needs_key: wait.needs_key,
            ticket: self.queues.ticket(),
            fault: None,
        };
        self.queues.insert(id, &blocked);
        self.keyspace.has_waiters = true;
        session.blocked = Some(blocked);
        Reply::Nothing
    }

    /// Ends the waiting of a client with the reply that its command has for that.
    pub(crate) fn time_out(&mut self, id: SessionId) {
        if let Some(mut blocked) = self.unblock(id) {
            let reply = std::mem::replace(&mut blocked.timeout_reply, Reply::Nothing);
            self.answer_waiting(id, blocked, reply);
        }
    }

    /// Takes a client out of all queues; its command if it was waiting.
    pub(crate) fn unblock(&mut self, id: SessionId) -> Option<Blocked> {
        let blocked = self.sessions.get_mut(&id)?.blocked.take()?;
        self.queues.remove(&blocked);
        self.keyspace.has_waiters = !self.queues.is_empty();
        Some(blocked)
    }

    /// What follows a whole command, EXEC or script: clients that waited for what it wrote are served, in order of arrival.
    pub(crate) fn after_command(&mut self) {
        if !self.monitor_feed.is_empty() {
            self.flush_monitor_feed();
        }
        self.publish_events();
        self.send_pending_stale();
        while !self.keyspace.touched.is_empty() {
            for place in std::mem::take(&mut self.keyspace.touched) {
                self.serve_waiting_for(&place);
            }
            self.publish_events();
        }
    }

    /// Serves those who wait for a key that was written; who needs the key hears of it when it is gone.
    fn serve_waiting_for(&mut self, place: &(DbIndex, Blob)) {
        let mut served = 0;
        while let Some((ticket, id)) = self.queues.next_for(place, served) {
            served = ticket;
            self.keyspace.select(place.0);
            let is_concerned = self.keyspace.exists(&place.1)
                || self.sessions.get(&id).is_some_and(|session| {
                    let blocked = session.blocked.as_ref();
                    blocked.is_some_and(|blocked| blocked.needs_key)
                });
            if is_concerned {
                self.serve(id, &place.1);
            }
        }
    }

    /// Runs a waiting client's command again, since `key` was written; if it no longer waits, the client is answered.
    fn serve(&mut self, id: SessionId, key: &[u8]) {
        let Some(blocked) = self
            .sessions
            .get_mut(&id)
            .and_then(|session| session.blocked.clone())
        else {
            return;
        };
        // What waits as part of the engine (WAIT) is not served by a key.
        if !matches!(blocked.row.handler(), Handler::Read(_) | Handler::Write(_)) {
            return;
        }
        self.keyspace.set_now(self.now);
        self.keyspace.select(blocked.db);
        self.publish_events();
        let acting = self.keyspace.acting;
        self.keyspace.acting = Acting {
            client: Some(id),
            is_inside: true,
            is_indirect: false,
        };
        self.remove_due_keys_of(blocked.row, &blocked.request);
        let (reply, wait) =
            self.call_on_keyspace(id, blocked.row, &blocked.request, Caller::Client, Some(key));
        self.keyspace.acting = acting;
        self.keyspace.take_placement();
        if wait.is_none() {
            self.unblock(id);
            if let Reply::Error(error) = &reply {
                self.stats.failed(blocked.row, error);
            }
            // What it waited does not count, and who waits in vain is not logged at all.
            if self.config.slowlog_log_slower_than == 0 {
                self.log_slow(id, (blocked.row, &blocked.request), Caller::Client, 0);
            }
            self.answer_waiting(id, blocked, reply);
        }
        self.send_pending_stale();
    }
}

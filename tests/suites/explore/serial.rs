//! The search for a serial order, against all permutations.

use fakeserver::explore::{Operation, Order, Serial, Spec, search};

/// A register with compare-and-set, one for each part.
struct Registers;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Read,
    Write(u8),
    /// From, to.
    Swap(u8, u8),
}

type Input = (u8, Call);

impl Spec for Registers {
    type State = u8;
    type Input = Input;
    /// What was read; whether a swap was done.
    type Output = u8;

    fn init(&self) -> u8 {
        0
    }

    fn step(
        &self,
        state: &u8,
        (_, call): &Input,
        output: Option<&u8>,
    ) -> impl IntoIterator<Item = u8> {
        let (answer, next) = match *call {
            Call::Read => (*state, *state),
            Call::Write(value) => (0, value),
            Call::Swap(from, to) if from == *state => (1, to),
            Call::Swap(..) => (0, *state),
        };
        output
            .is_none_or(|output| *output == answer)
            .then_some(next)
    }

    fn part(&self, (register, _): &Input) -> String {
        register.to_string()
    }
}

/// The same without parts: all registers in one state.
struct Together;

impl Spec for Together {
    type State = [u8; 2];
    type Input = Input;
    type Output = u8;

    fn init(&self) -> [u8; 2] {
        [0; 2]
    }

    fn step(
        &self,
        state: &[u8; 2],
        input: &Input,
        output: Option<&u8>,
    ) -> impl IntoIterator<Item = [u8; 2]> {
        let at = usize::from(input.0);
        let next = Registers.step(&state[at], input, output).into_iter().next();
        next.map(|value| {
            let mut state = *state;
            state[at] = value;
            state
        })
    }
}

type Op = Operation<Input, u8>;

/// Operations at random times with answers that are sometimes right. A client may call without waiting for its last call.
fn random_history(rng: &mut fastrand::Rng, registers: u8) -> Vec<Op> {
    let count = rng.usize(2..=6);
    let mut times: Vec<u64> = (0..2 * count as u64).collect();
    rng.shuffle(&mut times);
    let next = times
        .chunks_exact(2)
        .map(|pair| (pair[0].min(pair[1]), pair[0].max(pair[1])));
    let mut history: Vec<Op> = Vec::new();
    for (invoked, returned) in next {
        let call = match rng.u8(..3) {
            0 => Call::Read,
            1 => Call::Write(rng.u8(0..3)),
            _ => Call::Swap(rng.u8(0..3), rng.u8(0..3)),
        };
        let output = match call {
            Call::Read => rng.u8(0..3),
            Call::Write(_) => 0,
            Call::Swap(..) => rng.u8(0..2),
        };
        let open = rng.u8(..5) == 0;
        history.push(Operation {
            client: rng.usize(0..3),
            invoked,
            returned: (!open).then_some(returned),
            input: (rng.u8(0..registers), call),
            output: (!open).then_some(output),
        });
    }
    history
}

/// Whether some order of some of the operations, all that returned among them, is allowed: by trying every one.
fn brute_force(history: &[Op], order: Order) -> bool {
    fn go(history: &[Op], order: Order, placed: &mut Vec<usize>, state: [u8; 2]) -> bool {
        let complete =
            (0..history.len()).all(|at| placed.contains(&at) || history[at].returned.is_none());
        if complete {
            return true;
        }
        for at in 0..history.len() {
            if placed.contains(&at) {
                continue;
            }
            let must_wait = (0..history.len()).any(|other| {
                let tied = order == Order::RealTime || history[other].client == history[at].client;
                let before = history[other]
                    .returned
                    .is_some_and(|end| end < history[at].invoked);
                tied && before && !placed.contains(&other)
            });
            if must_wait {
                continue;
            }
            let output = history[at].output.as_ref();
            for state in Together.step(&state, &history[at].input, output) {
                placed.push(at);
                if go(history, order, placed, state) {
                    return true;
                }
                placed.pop();
            }
        }
        false
    }
    go(history, order, &mut Vec::new(), [0; 2])
}

const HISTORIES: usize = 6_000;

#[test]
fn the_search_agrees_with_all_permutations_on_random_histories() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut explained = [0; 2];
    for round in 0..HISTORIES {
        let history = random_history(&mut rng, 2);
        for (at, order) in [Order::RealTime, Order::PerClient].into_iter().enumerate() {
            let expected = brute_force(&history, order);
            for searched in [
                search(&Registers, order, &history, 10_000),
                search(&Together, order, &history, 10_000),
            ] {
                let found = searched == Serial::Explained;
                assert_eq!(
                    found, expected,
                    "{round}, {order}: {history:#?}\n{searched:?}"
                );
            }
            explained[at] += usize::from(expected);
        }
    }
    // Neither verdict is rare, and real time is the stricter order.
    assert!(explained[0] > HISTORIES / 10, "{explained:?}");
    assert!(explained[0] < explained[1], "{explained:?}");
    assert!(explained[1] < HISTORIES * 9 / 10, "{explained:?}");
}

fn op(client: usize, times: (u64, u64), input: Input, output: u8) -> Op {
    Operation {
        client,
        invoked: times.0,
        returned: Some(times.1),
        input,
        output: Some(output),
    }
}

#[test]
fn a_stale_read_is_serializable_and_not_linearizable() {
    let history = [
        op(0, (0, 1), (0, Call::Write(1)), 0),
        op(1, (2, 3), (0, Call::Read), 0),
    ];
    assert_eq!(
        search(&Registers, Order::PerClient, &history, 100),
        Serial::Explained
    );
    let Serial::Unexplained(text) = search(&Registers, Order::RealTime, &history, 100) else {
        panic!("a stale read was explained");
    };
    let expected = "\
no order of these operations is linearizable:
    1  client a: (0, Write(1)) -> 0  (from 0 to 1)
    -  client b: (0, Read) -> 0  (from 2 to 3)
  the longest order that is allowed is numbered; it leads to 0: 1, from which none of the others follows";
    assert_eq!(text, expected);
}

#[test]
fn an_order_per_client_holds_across_the_parts_that_a_client_uses() {
    // Each part alone has a serial order; with each client's own order there is none for both.
    let history = [
        op(0, (0, 1), (0, Call::Write(1)), 0),
        op(0, (2, 3), (1, Call::Read), 0),
        op(1, (4, 5), (1, Call::Write(1)), 0),
        op(1, (6, 7), (0, Call::Read), 0),
    ];
    for order in [Order::RealTime, Order::PerClient] {
        let searched = search(&Registers, order, &history, 1_000);
        assert!(
            matches!(searched, Serial::Unexplained(_)),
            "{order}: {searched:?}"
        );
    }
}

#[test]
fn a_search_that_is_too_long_says_so() {
    // All at the same time, so that every subset is a state of the search; no order explains the last.
    let mut history: Vec<Op> = (0..24)
        .map(|at| op(at, (0, 100), (0, Call::Write(at as u8 + 1)), 0))
        .collect();
    history.push(op(30, (0, 100), (0, Call::Read), 200));
    let undecided = Serial::Undecided {
        operations: 25,
        looked_at: 5_000,
    };
    assert_eq!(
        search(&Registers, Order::RealTime, &history, 5_000),
        undecided
    );
}

//! [`Spec`]: what operations do when nobody disturbs them.

use std::fmt::Debug;
use std::hash::Hash;

/// A sequential specification: the states that an operation can lead to when it runs alone.
///
/// ```
/// # #[cfg(feature = "explore")] {
/// use fakeserver::explore::Spec;
///
/// #[derive(Clone, Debug)]
/// enum Call {
///     Add(i64),
///     Read,
/// }
///
/// /// A counter; both calls answer its value.
/// struct Counter;
///
/// impl Spec for Counter {
///     type State = i64;
///     type Input = Call;
///     type Output = i64;
///
///     fn init(&self) -> i64 {
///         0
///     }
///
///     fn step(&self, state: &i64, call: &Call, answer: Option<&i64>) -> impl IntoIterator<Item = i64> {
///         let next = match call {
///             Call::Add(n) => state + n,
///             Call::Read => *state,
///         };
///         // An operation that never returned may have answered anything.
///         answer.is_none_or(|answer| *answer == next).then_some(next)
///     }
/// }
/// # }
/// ```
pub trait Spec: Send + Sync + 'static {
    /// What operations depend on.
    type State: Clone + Eq + Hash + Debug;
    /// What is asked.
    type Input: Clone + Debug + Send + 'static;
    /// What comes back.
    type Output: Clone + Debug + Send + 'static;

    /// The state before the first operation.
    fn init(&self) -> Self::State;

    /// The states in which an operation can leave this one, given what it returned; none if it cannot return that. An operation
    /// that never returned has no output.
    fn step(
        &self,
        state: &Self::State,
        input: &Self::Input,
        output: Option<&Self::Output>,
    ) -> impl IntoIterator<Item = Self::State>;

    /// Which part of the state an operation has to do with, a key for instance. Operations on different parts do not affect each
    /// other, so that each part's are searched alone; then [`Spec::init`] is the state of one part.
    fn part(&self, input: &Self::Input) -> String {
        let _ = input;
        String::new()
    }
}

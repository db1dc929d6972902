//! [`Either`]: one iterator over a value that is kept in one of two forms.

/// One of two iterators with the same items.
pub(crate) enum Either<L, R> {
    /// Over the small form.
    Left(L),
    /// Over the large form.
    Right(R),
}

impl<T, L: Iterator<Item = T>, R: Iterator<Item = T>> Iterator for Either<L, R> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Either::Left(items) => items.next(),
            Either::Right(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Either::Left(items) => items.size_hint(),
            Either::Right(items) => items.size_hint(),
        }
    }
}

impl<T, L, R> ExactSizeIterator for Either<L, R>
where
    L: ExactSizeIterator<Item = T>,
    R: ExactSizeIterator<Item = T>,
{
}

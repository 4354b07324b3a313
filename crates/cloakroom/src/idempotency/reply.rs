//! The answer to a request, made before the commit that makes it true.

use jiff::Timestamp;

use super::lease::Lease;
use crate::api::{Answer, ApiError};
use crate::caller::Caller;
use crate::storage::Error;

/// How a handler answers with what a verb returns.
///
/// ```ignore
/// let reply = Reply::to(&caller, |made: &Made| Answer::ok(&MadeBody::new(made)));
/// let made = rooms::make(&vault, &caller, new, &reply).await?;
/// reply.answer(&made)
/// ```
pub struct Reply<'a, T: ?Sized> {
    lease: Option<&'a Lease>,
    render: Box<Render<'a, T>>,
}

type Render<'a, T> = dyn Fn(&T) -> Result<Answer, ApiError> + Send + Sync + 'a;

/// An answer that is to be kept; nothing for a request without a key.
#[derive(Default)]
#[must_use = "whoever keeps it says when it is durable"]
pub struct Kept<'a> {
    held: Option<(&'a Lease, Answer)>,
    until: Option<Timestamp>,
}

impl<'a, T: ?Sized> Reply<'a, T> {
    pub fn to(
        caller: &'a Caller,
        render: impl Fn(&T) -> Result<Answer, ApiError> + Send + Sync + 'a,
    ) -> Self {
        Self {
            lease: caller.lease.as_deref(),
            render: Box::new(render),
        }
    }

    /// For whoever waits for no answer.
    pub fn none() -> Self {
        Self {
            lease: None,
            render: Box::new(|_| Ok(Answer::empty())),
        }
    }

    /// Whether the answer has to be known before the commit.
    pub fn is_kept(&self) -> bool {
        self.lease.is_some()
    }

    /// Makes the answer, for the statement that makes it true.
    pub fn keep(&self, value: &T) -> Result<Kept<'a>, Error> {
        let Some(lease) = self.lease else {
            return Ok(Kept::default());
        };
        let answer = (self.render)(value).map_err(|_| Error::Unanswerable)?;
        Ok(Kept {
            held: Some((lease, answer)),
            until: None,
        })
    }

    /// Answers, once everything is durable.
    pub fn answer(&self, value: &T) -> Result<Answer, ApiError> {
        (self.render)(value)
    }
}

impl Kept<'_> {
    /// The same, but not for longer than what it shows.
    pub fn until(mut self, end: Option<Timestamp>) -> Self {
        self.until = end;
        self
    }

    /// The parameter that `replied!` takes: the sealed answer, with `record`, which tells what is to be
    /// recorded when it is given again.
    pub fn rows(&self, record: &[u8]) -> Result<Vec<String>, Error> {
        let Some((lease, answer)) = &self.held else {
            return Ok(Vec::new());
        };
        let row = lease.row(answer, record, self.until);
        Ok(vec![row.map_err(|_| Error::Unanswerable)?])
    }

    /// The statement that carried it did what it was to do, and is durable.
    pub fn done(self) {
        if let Some((lease, _)) = self.held {
            lease.end();
        }
    }
}

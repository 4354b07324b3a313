//! What there is to write about a token, and what becomes of it.

use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use uuid::Uuid;

use crate::access::Container;
use crate::audit::{Entry, told_again};
use crate::idempotency::Kept;
use crate::security_codes::SealedCode;
use crate::storage::Error;
use crate::token_attributes::Term;
use crate::token_attributes::{Expiry, TokenId};
use crate::token_types::TokenKind;

/// What a token is kept as, whether it is new or changed.
pub(crate) struct Values {
    pub id: TokenId,
    /// Whether its id was named, and may be another token's, rather than drawn.
    pub is_named: bool,
    pub container: Container,
    pub container_number: i32,
    pub kind: TokenKind,
    pub expiry: Option<Expiry>,
    pub sealed: Vec<u8>,
    pub mask: Option<String>,
    pub metadata: Option<String>,
    pub fingerprint: Option<Fingerprint>,
    pub fingerprint_expression: Option<String>,
    pub search_indexes: Option<String>,
    pub terms: Vec<Term>,
    /// The application that creates or changes it.
    pub by: Uuid,
    pub code: CodeChange,
    /// Whether this token is to be the only one with its fingerprint in its container.
    pub claims: bool,
    /// Intents that are converted, and gone when it is written.
    pub intents: Vec<Uuid>,
    /// What is recorded when it is written.
    pub entries: Vec<Entry>,
}

/// What happens to the security code.
pub(crate) enum CodeChange {
    Stays,
    Goes,
    Comes(SealedCode),
}

/// What a changed token was before.
pub(crate) struct Before {
    pub row_version: u32,
    pub container: Container,
    pub container_number: i32,
    pub fingerprint: Option<Fingerprint>,
    pub terms: Vec<Term>,
}

/// One thing to write.
pub(crate) enum Write {
    Insert(Values),
    Update(Before, Values),
}

impl Write {
    pub(super) fn values(&self) -> &Values {
        let (Self::Insert(values) | Self::Update(_, values)) = self;
        values
    }

    /// Has another intent converted together with what it already brings.
    pub(crate) fn consume(&mut self, intent: Uuid, converted: Entry) {
        let (Self::Insert(values) | Self::Update(_, values)) = self;
        values.intents.push(intent);
        values.entries.push(converted);
    }
}

impl Values {
    /// What nobody else may have: a claim, if it is to be one, and an id.
    pub(super) fn wants(&self) -> (Option<([u8; 32], i32)>, Uuid) {
        let claimed = self.fingerprint.filter(|_| self.claims);
        let claim = claimed.map(|fingerprint| (*fingerprint.as_bytes(), self.container_number));
        (claim, *self.id.key())
    }
}

/// What became of something to write. Unless all of it was, none of it was.
pub(crate) enum Outcome {
    /// When each token was created or changed.
    Written(Vec<Timestamp>),
    /// The one at this position was not: its expiry had passed, or its row has another version by now.
    Refused(usize),
    /// Somebody else was faster with an id or a claim.
    Outrun,
}

/// What is said about writing, before it is done: only where an answer is kept with what it tells.
#[derive(Default)]
pub(crate) struct Told<'a> {
    /// When tokens are created or changed; without it, when the database does it.
    pub at: Option<Timestamp>,
    pub kept: Kept<'a>,
    /// What is shown, and recorded again when the answer is given again.
    pub reads: Vec<Entry>,
}

impl Told<'_> {
    pub(super) fn rows(&self) -> Result<Vec<String>, Error> {
        self.kept.rows(&told_again(&self.reads))
    }
}

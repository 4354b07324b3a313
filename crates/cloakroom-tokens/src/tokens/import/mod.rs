//! Imports tokens in batches. Each batch is one transaction, together with the record of its outcome.
//!
//! A token is validated, encrypted and indexed as `create` does it. What differs: an operator imports, so neither grants nor
//! velocity limits apply; entries of the audit log name the operator; and no events are sent to webhooks.

mod plan;

use cloakroom_core::audit::{self, AuditedStatement, AuditedTransaction, Entry};
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::contains_card_number;
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Transaction};

use self::plan::Plan;
use super::commit::{claim_others, claims, insert_pairs, release_claims};
use super::content::Content;
use super::store::{self, WriteContext};
use super::{Error, NewToken, TokenVault};
use crate::attributes::{NO_MASK, NewId, TokenId};
use crate::types::SecurityCode;

/// Attempts when concurrent requests take the same id or claim.
const ATTEMPTS: usize = 12;

/// A validated line of an import.
pub struct ImportToken {
    id: TokenId,
    /// Whether the line has an id; otherwise, it is derived from import and line.
    has_given_id: bool,
    content: Content,
    deduplicate: bool,
    /// Whether the line has a security code. It is never imported: its retention began when the cardholder entered it.
    pub has_security_code: bool,
}

/// How a line is imported.
pub struct ImportLine<'a> {
    pub new: NewToken<'a>,
    /// The id if the line has none.
    pub derived_id: TokenId,
    /// Whether the token has no mask, not even that of its type.
    pub has_no_mask: bool,
}

impl ImportLine<'_> {
    /// Validates a line; the reasons never contain a value.
    pub async fn validate(
        mut self,
        vault: &TokenVault,
        caller: &Caller,
    ) -> Result<ImportToken, Error> {
        let unsupported = [
            ("encrypted", self.new.encrypted.is_some()),
            ("token_intent_id", self.new.token_intent_id.is_some()),
        ];
        if let Some((name, _)) = unsupported.into_iter().find(|(_, is_set)| *is_set) {
            let rule = "is not supported by imports";
            return Err(Error::Invalid(vec![FieldError::new(name, rule)]));
        }
        let mask = self.new.mask.take().filter(|_| !self.has_no_mask);
        self.new.mask = mask;
        let mut validated = self.new.validate(vault, caller, String::new()).await?;
        if self.has_no_mask {
            validated.content.attributes.mask = Some(NO_MASK.to_owned());
        }
        let (id, has_given_id) = match validated.id {
            NewId::Random => (self.derived_id, false),
            NewId::Given(text) => (TokenId::of(caller.tenant, &text), true),
            NewId::Alias(_) => {
                let rule = "must not be an expression in an import";
                return Err(Error::Invalid(vec![FieldError::new("id", rule)]));
            }
        };
        Ok(ImportToken {
            id,
            has_given_id,
            content: validated.content,
            deduplicate: validated.deduplicate,
            has_security_code: matches!(validated.code, SecurityCode::Given(_)),
        })
    }
}

/// What became of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    Created(TokenId),
    /// A token with the same fingerprint exists in the container; nothing was written.
    Duplicate(TokenId),
    /// The reason, without any value.
    Rejected(String),
}

/// Records the outcome of a batch in its transaction.
pub trait BatchRecord: Sync {
    /// Inserts the record and returns the entry of the batch for the audit log.
    fn insert(
        &self,
        transaction: &Transaction,
        outcomes: &[Imported],
    ) -> impl Future<Output = Result<Entry, storage::Error>> + Send;
}

/// Imports a batch; lines that are rejected already have their reason. Returns one outcome per line, once all are durable.
///
/// Fails with `IdTaken` if a token with the derived id of a line exists: the line was imported before, but its record is
/// missing.
pub async fn import(
    vault: &TokenVault,
    caller: &Caller,
    lines: &[Result<ImportToken, String>],
    record: &impl BatchRecord,
) -> Result<Vec<Imported>, Error> {
    for _ in 0..ATTEMPTS {
        let plan = Plan::make(vault, caller, lines).await?;
        failpoint("import.planned")?;
        match commit(vault, caller.tenant, &plan, record).await {
            Ok(true) => {
                failpoint("import.committed")?;
                return Ok(plan.outcomes);
            }
            Ok(false) | Err(storage::Error::RolledBack) => {}
            Err(error) if error.is_conflict("claim_pkey") => {
                for claim in claims(plan.tokens.iter().map(|token| (token, None))) {
                    release_claims(vault, caller.tenant, &claim).await?;
                }
            }
            Err(error)
                if error.is_conflict("token_pkey")
                    || error.is_conflict("reserved_token_id_pkey") => {}
            Err(storage::Error::StaleKey) => vault.keys.replace_stale(caller.tenant).await,
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Contended)
}

/// All violations as one sentence: attributes and rules, without values. Names of members come from the line, so they may
/// contain a card number as well.
pub fn reasons(broken: &[FieldError]) -> String {
    let rules = broken.iter().map(|it| format!("{}: {}", it.path, it.rule));
    let text = rules.collect::<Vec<_>>().join("; ");
    match contains_card_number(&text) {
        true => "a name contains a card number".to_owned(),
        false => text,
    }
}

/// Determines the outcome of a batch without writing anything.
pub async fn plan_import(
    vault: &TokenVault,
    caller: &Caller,
    lines: &[Result<ImportToken, String>],
) -> Result<Vec<Imported>, Error> {
    Ok(Plan::make(vault, caller, lines).await?.outcomes)
}

/// Writes the tokens of a plan and its record; false if an expiry has passed meanwhile.
async fn commit(
    vault: &TokenVault,
    tenant: TenantId,
    plan: &Plan,
    record: &impl BatchRecord,
) -> Result<bool, storage::Error> {
    let context = WriteContext {
        reserves_ids: vault.config.tokens.reserves_deleted_ids(),
    };
    let tokens = plan.tokens.iter().map(|token| (token, None));
    insert_pairs(vault, tenant, tokens).await?;
    let transaction = audit::begin(&vault.audit).await?;
    match write(&transaction, tenant, plan, (context, record)).await {
        Ok(Some(entry)) => {
            let entries = plan.tokens.iter().flat_map(|token| &token.entries);
            let mut entries: Vec<Entry> = entries.cloned().collect();
            entries.push(entry);
            transaction.commit(&entries).await?;
            Ok(true)
        }
        Ok(None) => {
            transaction.roll_back().await;
            Ok(false)
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

async fn write(
    transaction: &AuditedTransaction<'_>,
    tenant: TenantId,
    plan: &Plan,
    (context, record): (WriteContext, &impl BatchRecord),
) -> Result<Option<Entry>, storage::Error> {
    if !plan.tokens.is_empty() {
        let tokens = plan.tokens.iter().map(|token| (token, None));
        claim_others(transaction, tenant, tokens).await?;
        let statement = AuditedStatement::within(transaction);
        if !store::insert_all(statement, tenant, &plan.tokens, context).await? {
            return Ok(None);
        }
    }
    let entry = record.insert(transaction, &plan.outcomes).await?;
    failpoint("import.inserted")?;
    Ok(Some(entry))
}

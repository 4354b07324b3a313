//! Submits the card of a session: creates the token intent and completes the session, in one transaction.

use cloakroom_core::audit::{self, AuditedTransaction, EntityKind, Entry, Operation};
use cloakroom_core::current_keys::with_current_keys;
use cloakroom_platform::ids::TenantId;
use cloakroom_tokens::TokenVault;
use cloakroom_tokens::intents::{self, NewIntent, PreparedIntent};
use serde_json::value::RawValue;

use super::find::OpenedPage;
use super::session::{Completion, Session, Status};
use super::{Error, card, sealed, store};

/// A card as the page sends it.
pub(super) struct SubmittedCard<'a> {
    pub data: &'a RawValue,
    pub cardholder_name: Option<String>,
}

/// Creates the token intent of a session, once. Of several concurrent requests, one succeeds.
///
/// Returns where the cardholder returns to.
pub(super) async fn submit(
    vault: &TokenVault,
    page: OpenedPage,
    card: SubmittedCard<'_>,
) -> Result<String, Error> {
    let submit = || submit_once(vault, &page, &card);
    with_current_keys(&vault.keys, &page.caller, submit).await
}

async fn submit_once(
    vault: &TokenVault,
    page: &OpenedPage,
    card: &SubmittedCard<'_>,
) -> Result<String, Error> {
    let OpenedPage { session, caller } = page;
    if session.status() != Status::Open {
        return Err(Error::NotOpen);
    }
    let now = vault.clock.now().await?;
    let mut errors = card::check(card.data, caller.tenant_kind, now);
    let is_required = session.facts.collects_name;
    let name = card::validate_name(card.cardholder_name.as_deref(), is_required);
    let name = name.unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    let new = NewIntent {
        kind: Some("card".to_owned()),
        data: Some(card.data),
        encrypted: None,
    };
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let intent = intents::prepare(vault, caller, new).await?;
    let next = session.complete(Completion {
        token_intent_id: intent.id(),
        cardholder_name: name.map(str::to_owned),
        completed_at: now,
    });
    let sealed = sealed::seal(vault, caller.tenant, &next).await?;
    let transaction = audit::begin(&vault.audit).await?;
    let written = write(&transaction, &next, &sealed, &intent, caller.tenant).await;
    if let Err(error) = written {
        transaction.roll_back().await;
        return Err(error);
    }
    let entity = EntityKind::CheckoutSession;
    let completed = Entry::new(caller, Operation::Update, entity, next.columns.id);
    transaction
        .commit(&[intent.entry(caller), completed])
        .await?;
    Ok(next.return_url(Some(intent.id())))
}

/// The session first: a session that is no longer open gets no intent.
async fn write(
    transaction: &AuditedTransaction<'_>,
    next: &Session,
    sealed: &[u8],
    intent: &PreparedIntent,
    tenant: TenantId,
) -> Result<(), Error> {
    if !store::complete(transaction, &next.columns, sealed).await? {
        return Err(Error::NotOpen);
    }
    Ok(intents::insert_within(transaction, tenant, intent).await?)
}

//! Creates checkout sessions.

use cloakroom_core::access::{ApplicationKind, Permission, PrincipalKind};
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::current_keys::with_current_keys;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_crypto::{Sensitive, random_base58, secret_digest};
use cloakroom_platform::ids;
use cloakroom_tokens::TokenVault;

use super::session::{Session, SessionColumns, State};
use super::{Error, NewSession, sealed, store};

/// More than 180 bits: the page cannot be found by guessing.
const PAGE_KEY_CHARACTERS: usize = 32;
const PAGE_DOMAIN: &str = "checkout-page.v2";

/// A new session. The page key is returned once and stored as a digest.
pub struct CreatedSession {
    pub session: Session,
    pub page_key: Sensitive<String>,
}

/// Creates a session and the key of its page.
pub async fn create(
    vault: &TokenVault,
    caller: &Caller,
    new: NewSession,
    template: &ResponseTemplate<'_, CreatedSession>,
) -> Result<CreatedSession, Error> {
    let create = || create_once(vault, caller, new.clone(), template);
    with_current_keys(&vault.keys, caller, create).await
}

async fn create_once(
    vault: &TokenVault,
    caller: &Caller,
    new: NewSession,
    template: &ResponseTemplate<'_, CreatedSession>,
) -> Result<CreatedSession, Error> {
    require_private(caller)?;
    caller.require_anywhere(Permission::TokenIntentCreate)?;
    let created_at = vault.clock.now().await?;
    let (facts, expires_at) = new.validate(caller, created_at)?;
    let page_key = Sensitive::new(random_base58(PAGE_KEY_CHARACTERS));
    let columns = SessionColumns {
        tenant_number: caller.tenant.number,
        id: ids::new_uuid(),
        version: 1,
        state: State::Open,
        page_digest: page_digest(page_key.expose()).to_vec(),
        created_by: caller.application,
        created_at,
        expires_at,
        is_past_expiry: false,
    };
    let session = Session { columns, facts };
    let sealed = sealed::seal(vault, caller.tenant, &session).await?;
    let created = CreatedSession { session, page_key };
    let columns = &created.session.columns;
    let entity = EntityKind::CheckoutSession;
    let entry = Entry::new(caller, Operation::Create, entity, columns.id);
    let response = template.render_pending(&created)?;
    let change = audit::begin_statement(&vault.audit, &[entry], response).await?;
    store::insert(change, columns, &sealed).await?;
    Ok(created)
}

/// Only servers create sessions: a public key could show cardholders any amount and reference in the merchant's name.
pub(super) fn require_private(caller: &Caller) -> Result<(), Error> {
    let is_application = caller.kind == PrincipalKind::Application;
    match is_application && caller.application_kind == ApplicationKind::Private {
        true => Ok(()),
        false => Err(Error::WrongKind(ApplicationKind::Private)),
    }
}

/// The digest that a page's key is stored as.
pub(super) fn page_digest(page_key: &str) -> [u8; 32] {
    secret_digest(PAGE_DOMAIN, &[page_key.as_bytes()])
}

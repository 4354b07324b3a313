//! Maps search expressions to domains, which are registered on first use.
//!
//! Terms of two domains cannot be compared, so the table of terms does not show that two expressions have a value in
//! common. A search specifies a value and no expression: it has to look for the term of every domain of the tenant.
//! The number of domains is therefore bounded; expressions beyond the bound share one.

use std::collections::HashSet;
use std::sync::Arc;

use cloakroom_crypto::content_digest;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Db};
use moka::future::Cache;

use super::store;
use crate::types::TokenKind;

const CACHED_MAX: u64 = 100_000;
/// Attempts when several expressions are first used concurrently.
const ATTEMPTS: usize = 10;
/// The domain of all expressions that have none of their own.
const SHARED: &str = "data";

/// Identifies a token type and a search expression.
pub(super) type ExpressionDigest = [u8; 16];

/// The domain of search terms. A sub-key is derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain(String);

impl Domain {
    fn of(digest: &ExpressionDigest) -> Self {
        Self(format!("{SHARED}:{}", hex::encode(digest)))
    }

    fn shared() -> Self {
        Self(SHARED.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// This node's cache of registered expressions. They are never removed, so one that is cached stays registered.
pub struct SearchExpressions {
    db: Db,
    registered: Cache<i32, Arc<HashSet<ExpressionDigest>>>,
}

impl SearchExpressions {
    pub fn new(db: &Db) -> Self {
        Self {
            db: db.clone(),
            registered: Cache::new(CACHED_MAX),
        }
    }
}

fn digest_of(kind: TokenKind, expression: &str) -> ExpressionDigest {
    let text = format!("{}:{}", kind.name(), expression.trim());
    let mut digest = [0; 16];
    digest.copy_from_slice(&content_digest(text.as_bytes())[..16]);
    digest
}

fn is_default(kind: TokenKind, expression: &str) -> bool {
    kind.default_search_indexes().contains(&expression)
}

/// The domain of an expression, registered when it is first used. The defaults of the types need no registration.
pub async fn domain_of(
    expressions: &SearchExpressions,
    tenant: TenantId,
    kind: TokenKind,
    expression: &str,
) -> Result<Domain, storage::Error> {
    let digest = digest_of(kind, expression);
    if is_default(kind, expression) {
        return Ok(Domain::of(&digest));
    }
    if let Some(known) = expressions.registered.get(&tenant.number).await
        && known.contains(&digest)
    {
        return Ok(Domain::of(&digest));
    }
    // Boxed to keep the common path's future small.
    Box::pin(register(expressions, tenant, digest)).await
}

async fn register(
    expressions: &SearchExpressions,
    tenant: TenantId,
    digest: ExpressionDigest,
) -> Result<Domain, storage::Error> {
    let SearchExpressions { db, registered } = expressions;
    for _ in 0..ATTEMPTS {
        let known = store::list(db, tenant).await?;
        let is_full = known.len() >= store::REGISTERED_MAX;
        let is_known = known.contains(&digest);
        if is_known || is_full {
            registered.insert(tenant.number, Arc::new(known)).await;
            return Ok(match is_known {
                true => Domain::of(&digest),
                false => Domain::shared(),
            });
        }
        match store::insert(db, tenant, &digest).await {
            Ok(()) => {}
            // It may or may not be registered now; the token was not written, so the outcome is known.
            Err(storage::Error::OutcomeUnknown(statement)) => {
                return Err(storage::Error::TooSlow(statement));
            }
            Err(error) => return Err(error),
        }
    }
    Err(storage::Error::Unavailable(
        "no search expression could be registered".into(),
    ))
}

/// All domains that tokens of this tenant can have terms in.
///
/// Not cached: another node may have registered an expression before it committed a token.
pub async fn domains(
    expressions: &SearchExpressions,
    tenant: TenantId,
) -> Result<Vec<Domain>, storage::Error> {
    let registered = store::list(&expressions.db, tenant).await?;
    let defaults = TokenKind::ALL.into_iter().flat_map(|kind| {
        let texts = kind.default_search_indexes().iter();
        texts.map(move |text| digest_of(kind, text))
    });
    let mut digests: HashSet<ExpressionDigest> = defaults.collect();
    digests.extend(registered);
    let mut domains: Vec<Domain> = digests.iter().map(Domain::of).collect();
    domains.push(Domain::shared());
    Ok(domains)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_expressions_have_different_domains() {
        let digests = [
            digest_of(TokenKind::Token, "{{ data }}"),
            digest_of(TokenKind::Token, "{{ data.a }}"),
            digest_of(TokenKind::Card, "{{ data }}"),
        ];
        let distinct: HashSet<_> = digests.iter().collect();

        assert_eq!(distinct.len(), digests.len());
        assert_eq!(digests[0], digest_of(TokenKind::Token, " {{ data }} "));
        assert_ne!(Domain::of(&digests[0]), Domain::shared());
    }
}

//! Plans what a batch of an import writes: deduplicate, check ids, encrypt.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cloakroom_core::access::Container;
use cloakroom_core::audit::{Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys::TenantKeys;
use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use uuid::Uuid;

use super::{ImportToken, Imported};
use crate::attributes::{Digests, TokenId};
use crate::containers;
use crate::tokens::create::plan::open_duplicate;
use crate::tokens::create::planned_write::Claim;
use crate::tokens::store::{self, CodeChange, SealedToken};
use crate::tokens::token::entity_kind;
use crate::tokens::{Error, Token, TokenVault};

/// The version of a new row.
const FIRST_VERSION: u32 = 1;

const EXPIRED: &str = "expires_at: must be in the future";
const ID_TAKEN: &str = "id: is in use or belonged to a deleted token";
const ID_REPEATED: &str = "id: an earlier line has the same id";

/// The outcome of each line, and the tokens to insert, ordered by key.
pub(super) struct Plan {
    pub outcomes: Vec<Imported>,
    pub tokens: Vec<SealedToken>,
}

/// A line whose digests are computed.
struct Candidate<'a> {
    token: &'a ImportToken,
    digests: Digests,
}

impl Candidate<'_> {
    fn claim(&self) -> Option<(Fingerprint, Container)> {
        let fingerprint = self
            .digests
            .fingerprint
            .filter(|_| self.token.deduplicate)?;
        Some((fingerprint, self.token.content.container.clone()))
    }
}

impl Plan {
    pub(super) async fn make(
        vault: &TokenVault,
        caller: &Caller,
        lines: &[Result<ImportToken, String>],
    ) -> Result<Self, Error> {
        // Of this attempt: the keys may have been replaced since the previous one.
        let keys = caller.current_keys(&vault.keys).await?;
        let at = vault.clock.now().await?;
        let mut candidates = Vec::with_capacity(lines.len());
        for line in lines {
            candidates.push(match line {
                Ok(token) => candidate(vault, caller, (&keys, at), token).await?,
                Err(reason) => Err(reason.clone()),
            });
        }
        let valid = || candidates.iter().filter_map(|line| line.as_ref().ok());
        let mut existing = find_existing(vault, caller, valid()).await?;
        let keys_of_lines: Vec<Uuid> = valid().map(|it| *it.token.id.key()).collect();
        let mut taken: HashSet<Uuid> = match keys_of_lines.is_empty() {
            true => HashSet::new(),
            false => store::find_taken(&vault.db, caller.tenant, &keys_of_lines)
                .await?
                .into_iter()
                .collect(),
        };
        let mut earlier = HashSet::new();
        let (mut outcomes, mut tokens) = (Vec::with_capacity(lines.len()), Vec::new());
        for candidate in candidates {
            let candidate = match candidate {
                Ok(candidate) => candidate,
                Err(reason) => {
                    outcomes.push(Imported::Rejected(reason));
                    continue;
                }
            };
            let (claim, id) = (candidate.claim(), candidate.token.id.clone());
            // Deduplication precedes the id check, as in `create`.
            if let Some(found) = claim.as_ref().and_then(|claim| existing.get(claim)) {
                outcomes.push(Imported::Duplicate(found.clone()));
                continue;
            }
            if !taken.insert(*id.key()) {
                let reason = match (earlier.contains(id.key()), candidate.token.has_given_id) {
                    (true, _) => ID_REPEATED,
                    (false, true) => ID_TAKEN,
                    (false, false) => return Err(Error::IdTaken),
                };
                outcomes.push(Imported::Rejected(reason.to_owned()));
                continue;
            }
            earlier.insert(*id.key());
            if let Some(claim) = claim {
                existing.insert(claim, id.clone());
            }
            tokens.push(seal(vault, caller, (&keys, at), candidate).await?);
            outcomes.push(Imported::Created(id));
        }
        // A fixed order avoids deadlocks between batches with the same keys.
        tokens.sort_by_key(|token| *token.id.key());
        Ok(Self { outcomes, tokens })
    }
}

/// Computes the digests of a line, which can reject it.
async fn candidate<'a>(
    vault: &TokenVault,
    caller: &Caller,
    (keys, at): (&TenantKeys, Timestamp),
    token: &'a ImportToken,
) -> Result<Result<Candidate<'a>, String>, Error> {
    let content = &token.content;
    if content
        .attributes
        .expiry
        .is_some_and(|expiry| expiry.at <= at)
    {
        return Ok(Err(EXPIRED.to_owned()));
    }
    let has_fingerprint = token.deduplicate
        || caller.settings.fingerprint_tokens
        || content.attributes.has_own_fingerprint();
    match content
        .digests(vault, caller.tenant, keys, has_fingerprint)
        .await
    {
        Ok(digests) => Ok(Ok(Candidate { token, digests })),
        Err(Error::Invalid(broken)) => Ok(Err(super::reasons(&broken))),
        Err(error) => Err(error),
    }
}

/// The existing tokens that lines duplicate, by the active fingerprint of the line. Rows only find candidates: the opened
/// token must have one of the fingerprints.
async fn find_existing<'a>(
    vault: &TokenVault,
    caller: &Caller,
    candidates: impl Iterator<Item = &'a Candidate<'a>>,
) -> Result<HashMap<(Fingerprint, Container), TokenId>, Error> {
    let (mut wanted, mut claims) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let Some((fingerprint, container)) = candidate.claim() else {
            continue;
        };
        let others = &candidate.digests.other_fingerprints;
        let claim = Arc::new(Claim {
            fingerprint,
            other_fingerprints: others.clone(),
            container: container.clone(),
        });
        wanted.push((fingerprint, container.clone()));
        wanted.extend(others.iter().map(|it| (it.fingerprint, container.clone())));
        claims.resize(wanted.len(), claim);
    }
    let mut existing = HashMap::new();
    if wanted.is_empty() {
        return Ok(existing);
    }
    for (position, row) in store::find_duplicates(&vault.db, caller.tenant, &wanted).await? {
        let Some(claim) = claims.get(position) else {
            continue;
        };
        if let Some(opened) = open_duplicate(vault, caller, row, claim).await? {
            let key = (claim.fingerprint, claim.container.clone());
            existing.insert(key, opened.token.id);
        }
    }
    Ok(existing)
}

/// Encrypts a token as a new row.
async fn seal(
    vault: &TokenVault,
    caller: &Caller,
    (keys, at): (&TenantKeys, Timestamp),
    candidate: Candidate<'_>,
) -> Result<SealedToken, Error> {
    let claims = candidate.claim().is_some();
    let Candidate {
        token: line,
        digests,
    } = candidate;
    let (content, fingerprint) = (&line.content, digests.fingerprint);
    let token = Token {
        id: line.id.clone(),
        kind: content.kind,
        container: content.container.clone(),
        attributes: content.attributes.clone(),
        row_version: FIRST_VERSION,
        fingerprint,
        has_security_code: false,
        security_code_until: None,
        created_by: caller.application,
        created_at: at,
        modified_by: None,
        modified_at: None,
    };
    let sealed = content.seal(keys, &token, &digests.terms)?;
    let entity = entity_kind(content.kind);
    let (number, id) = (caller.tenant.number, line.id.text());
    let mut entry = Entry::by_system(number, Operation::Create, entity, id);
    entry.set_time(at);
    let numbers = &vault.container_numbers;
    Ok(SealedToken {
        container_number: containers::number_of(numbers, caller.tenant, &content.container).await?,
        sealed,
        has_chosen_id: line.has_given_id,
        id: token.id,
        kind: token.kind,
        container: token.container,
        attributes: token.attributes,
        fingerprint,
        other_fingerprints: digests.other_fingerprints,
        terms: digests.terms,
        digest_epoch: keys.digest_epoch(),
        by: caller.application,
        at,
        code: CodeChange::Keep,
        security_code_until: None,
        claims,
        entries: vec![entry],
        intents: Vec::new(),
    })
}

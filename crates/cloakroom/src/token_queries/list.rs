//! Lists and searches of the second version: one page after the other, in the order of containers.

use cloakroom_crypto::Fingerprint;

use super::cursor::{self, Endpoint, Position};
use super::store::{self, Below, Place, Range};
use super::{Condition, Error, Filter, Page};
use crate::access::{Container, Permission, Subject};
use crate::api::Broken;
use crate::audit::Operation;
use crate::caller::Caller;
use crate::card_numbers::card_numbers_in;
use crate::keys;
use crate::token_attributes::{Term, data_term, fingerprint_term, metadata_term};
use crate::token_rows::TokenRow;
use crate::token_types::TokenKind;
use crate::tokens::{self, TokenView};
use crate::vault::Vault;
use crate::{containers, storage, velocity};

/// Rows that are read at a time where only some of them are covered, and how often one request does so.
const LOOK: usize = 100;
const LOOKS_MAX: usize = 10;

/// One page, and where the next one starts.
pub struct Listed {
    pub tokens: Vec<TokenView>,
    pub next: Option<String>,
}

/// Lists what the caller may read, each token as the rule for its container shows it.
pub async fn list(
    vault: &Vault,
    caller: &Caller,
    filter: &Filter,
    page: &Page,
) -> Result<Listed, Error> {
    page_of(vault, caller, (Endpoint::List, filter), page).await
}

/// Finds what the caller may search, each token as the rule for its container shows it.
pub async fn search(
    vault: &Vault,
    caller: &Caller,
    filter: &Filter,
    page: &Page,
) -> Result<Listed, Error> {
    page_of(vault, caller, (Endpoint::Search, filter), page).await
}

async fn page_of(
    vault: &Vault,
    caller: &Caller,
    asked: (Endpoint, &Filter),
    page: &Page,
) -> Result<Listed, Error> {
    let (endpoint, filter) = asked;
    let permission = match endpoint {
        Endpoint::List => Permission::TokenRead,
        Endpoint::Search => Permission::TokenSearch,
    };
    let reach = match &filter.container {
        None => caller.reach(permission)?,
        Some(container) => {
            caller.require_within(permission, container)?;
            vec![container.clone()]
        }
    };
    let record = cursor::record(endpoint, filter);
    let start = match &page.start {
        None => None,
        Some(text) => Some(open_cursor(vault, caller, &record, text).await?),
    };
    let Some(wanted) = Wanted::new(vault, caller, filter).await? else {
        return Ok(Listed {
            tokens: Vec::new(),
            next: None,
        });
    };
    let walk = Walk {
        vault,
        caller,
        wanted,
    };
    let (rows, last) = match caller.fills_reach(permission) {
        true => walk.page(&reach, start, page.size).await?,
        false => {
            walk.covered_page(&reach, start, page.size, permission)
                .await?
        }
    };
    let next = match last {
        None => None,
        Some(position) => {
            let keys = vault.keys.of(caller.tenant).await?;
            Some(cursor::write(&position, &record, |record, bytes| {
                keys.seal(record, bytes)
            })?)
        }
    };
    let tokens = tokens::view_readable(vault, caller, rows, permission).await?;
    tokens::record_reads(vault, caller, operation(permission), &tokens).await?;
    Ok(Listed { tokens, next })
}

/// What records call a list or a search.
pub(super) fn operation(permission: Permission) -> Operation {
    match permission {
        Permission::TokenSearch => Operation::Search,
        _ => Operation::Read,
    }
}

/// Where the cursor points; one that was made for anything else is refused.
async fn open_cursor(
    vault: &Vault,
    caller: &Caller,
    record: &keys::Record<'_>,
    text: &str,
) -> Result<(Position, Container), Error> {
    let position = match cursor::decode(text) {
        // With the keys at hand: bytes that a client chose must not make the keyring look for more.
        Some(sealed) => {
            let keys = vault.keys.of(caller.tenant).await?;
            cursor::position(keys.open(record, &sealed))?
        }
        None => None,
    };
    let rule = "must be the `next` of the page before, for the same filter";
    let refused = || Error::Invalid(vec![Broken::new("start", rule)]);
    let position = position.ok_or_else(refused)?;
    let container = containers::container_of(vault, caller.tenant, position.container)
        .await?
        .ok_or_else(refused)?;
    Ok((position, container))
}

/// What rows are looked for, in the terms of the tables.
enum Wanted {
    Kinds(Vec<i16>),
    /// Only those with this fingerprint, when there is one.
    Term(Term, Option<Fingerprint>),
}

impl Wanted {
    /// Nothing when no token can be meant.
    async fn new(vault: &Vault, caller: &Caller, filter: &Filter) -> Result<Option<Self>, Error> {
        let keys = vault.keys.of(caller.tenant).await?;
        Ok(match &filter.condition {
            None => Some(Self::Kinds(all_kinds())),
            Some(Condition::Kind(kind)) => Some(Self::Kinds(vec![*kind as i16])),
            Some(Condition::Data(value)) => {
                velocity::admit(vault, caller, &card_numbers_in(value.expose())).await?;
                Some(Self::Term(data_term(&keys, value.expose()), None))
            }
            Some(Condition::Metadata { key, value }) => {
                Some(Self::Term(metadata_term(&keys, key, value), None))
            }
            Some(Condition::Fingerprint(text)) => {
                fingerprint(text).map(|print| Self::Term(fingerprint_term(&print), Some(print)))
            }
        })
    }
}

pub(super) fn all_kinds() -> Vec<i16> {
    TokenKind::ALL.into_iter().map(|kind| kind as i16).collect()
}

/// Text that is no fingerprint belongs to no token.
fn fingerprint(text: &str) -> Option<Fingerprint> {
    let bytes = bs58::decode(text).into_vec().ok()?;
    <[u8; 32]>::try_from(bytes).ok().map(Into::into)
}

/// Going through containers from the last path to the first.
struct Walk<'a> {
    vault: &'a Vault,
    caller: &'a Caller,
    wanted: Wanted,
}

/// A page of rows, and where the next page starts if there is one.
type PageOfRows = (Vec<TokenRow>, Option<Position>);

impl Walk<'_> {
    /// Everything in reach is covered: one row more than asked for tells whether there is a next page.
    async fn page(
        &self,
        reach: &[Container],
        start: Option<(Position, Container)>,
        size: usize,
    ) -> Result<PageOfRows, Error> {
        let mut rows = self.rows(reach, start, size + 1).await?;
        let has_more = rows.len() > size && size > 0;
        rows.truncate(size);
        let last = rows.last().filter(|_| has_more).map(Position::of);
        Ok((rows, last))
    }

    /// Only some of what is in reach is covered. What is not must not even be counted: there is a next
    /// page only if something is on it, or if this one has looked at as much as one request may.
    async fn covered_page(
        &self,
        reach: &[Container],
        mut start: Option<(Position, Container)>,
        size: usize,
        permission: Permission,
    ) -> Result<PageOfRows, Error> {
        let mut page: Vec<TokenRow> = Vec::new();
        if size == 0 {
            return Ok((page, None));
        }
        for _ in 0..LOOKS_MAX {
            let rows = self.rows(reach, start.take(), LOOK).await?;
            let is_end = rows.len() < LOOK;
            for row in rows {
                let container = container_of(self.vault, self.caller, &row).await?;
                let position = Position::of(&row);
                if is_covered(self.caller, permission, (&row, &container)) {
                    if page.len() == size {
                        let last = page.last().map(Position::of);
                        return Ok((page, last));
                    }
                    page.push(row);
                }
                start = Some((position, container));
            }
            if is_end {
                return Ok((page, None));
            }
        }
        Ok((page, start.map(|(position, _)| position)))
    }

    /// Up to `limit` rows below the start. The reach is in descending order and does not overlap.
    async fn rows(
        &self,
        reach: &[Container],
        start: Option<(Position, Container)>,
        limit: usize,
    ) -> Result<Vec<TokenRow>, storage::Error> {
        let mut rows = Vec::new();
        for container in reach {
            let missing = limit - rows.len();
            if missing == 0 {
                break;
            }
            let (low, end) = (container.as_str(), container.end());
            let (end, place) = match &start {
                // Everything here came before.
                Some((_, reached)) if reached.as_str() < low => continue,
                Some((position, reached)) if reached.as_str() < end.as_str() => {
                    (reached.as_str(), Place::of(position))
                }
                _ => (end.as_str(), Place::LOWEST),
            };
            rows.extend(self.below((&Range { low, end }, place), missing).await?);
        }
        Ok(rows)
    }

    async fn below(&self, below: Below<'_>, limit: usize) -> Result<Vec<TokenRow>, storage::Error> {
        let (db, tenant) = (&self.vault.db, self.caller.tenant);
        match &self.wanted {
            Wanted::Kinds(kinds) => store::of_kinds(db, tenant, kinds, below, limit).await,
            Wanted::Term(term, fingerprint) => {
                let what = (term, fingerprint.as_ref());
                store::by_term(db, tenant, what, below, limit).await
            }
        }
    }
}

/// Where a row says that it lies; opening it proves that.
pub(super) async fn container_of(
    vault: &Vault,
    caller: &Caller,
    row: &TokenRow,
) -> Result<Container, Error> {
    let container = containers::container_of(vault, caller.tenant, row.container).await?;
    Ok(container.ok_or(keys::Error::Integrity)?)
}

/// Whether the caller may see a row, as far as it can be told before it is opened.
pub(super) fn is_covered(
    caller: &Caller,
    permission: Permission,
    row: (&TokenRow, &Container),
) -> bool {
    let (row, container) = row;
    let id = row.id.text();
    let subject = Subject {
        container,
        id: Some(&id),
    };
    caller.require_on(permission, subject).is_ok()
}

impl Position {
    fn of(row: &TokenRow) -> Self {
        Self {
            container: row.container,
            created_at: row.created_at,
            token_id: *row.id.key(),
        }
    }
}

impl Place {
    fn of(position: &Position) -> Self {
        Self {
            created_at: position.created_at,
            token_id: position.token_id,
        }
    }
}

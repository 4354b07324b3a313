//! Lists and searches of v2: cursor pagination, ordered by container.

use cloakroom_core::access::{Container, Permission, Resource};
use cloakroom_core::audit::Operation;
use cloakroom_core::caller::Caller;
use cloakroom_core::keys::TenantKeys;
use cloakroom_core::{keys, velocity};
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;

use super::cursor::{self, Endpoint, Position};
use super::store::{self, PageStart, SortKey, TermFilter};
use super::{Condition, Error, Filter, Page};
use crate::attributes::{
    Term, data_terms, fingerprint_term, numbers_in_search, searched_metadata_terms,
};
use crate::containers;
use crate::fingerprint_pairs::find_other;
use crate::search_expressions::domains;
use crate::tokens::{self, SearchTerms, Token, TokenRow, TokenVault, TokenView};
use crate::types::TokenKind;

/// Rows per scan if the caller's rules cover only some of them, and scans per request.
const SCAN_ROWS: usize = 100;
const SCANS_MAX: usize = 10;

/// A page, and the cursor of the next one.
pub struct TokenPage {
    pub tokens: Vec<TokenView>,
    pub next: Option<String>,
}

/// Lists the tokens that the caller may read, each transformed by the rule for its container.
pub async fn list(
    vault: &TokenVault,
    caller: &Caller,
    filter: &Filter,
    page: &Page,
) -> Result<TokenPage, Error> {
    read_page(vault, caller, Endpoint::List, filter, page).await
}

/// Finds the tokens that the caller may search, each transformed by the rule for its container.
pub async fn search(
    vault: &TokenVault,
    caller: &Caller,
    filter: &Filter,
    page: &Page,
) -> Result<TokenPage, Error> {
    read_page(vault, caller, Endpoint::Search, filter, page).await
}

async fn read_page(
    vault: &TokenVault,
    caller: &Caller,
    endpoint: Endpoint,
    filter: &Filter,
    page: &Page,
) -> Result<TokenPage, Error> {
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
    let Some(table_filter) = TableFilter::new(vault, caller, filter).await? else {
        return Ok(TokenPage {
            tokens: Vec::new(),
            next: None,
        });
    };
    let scan = Scan {
        vault,
        caller,
        table_filter,
    };
    let (rows, last) = match caller.covers_reach(permission) {
        true => scan.page(&reach, start, page.size).await?,
        false => {
            scan.covered_page(&reach, start, page.size, permission)
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
    let searched = scan.table_filter.search_terms();
    let searched = searched.as_ref();
    let mut tokens = tokens::view_readable(vault, caller, rows, permission, searched).await?;
    // Rows of `term` are not authenticated, and neither are the paths by which the scan selected them.
    tokens.retain(|view| {
        let container = filter.container.as_ref();
        container.is_none_or(|container| container.holds(&view.token.container))
            && scan.table_filter.is_met_by(&view.token)
    });
    tokens::record_reads(vault, caller, operation(permission), &tokens).await?;
    Ok(TokenPage { tokens, next })
}

/// The operation of a list or a search in the audit log.
pub(super) fn operation(permission: Permission) -> Operation {
    match permission {
        Permission::TokenSearch => Operation::Search,
        _ => Operation::Read,
    }
}

/// Opens a cursor; rejects one that was issued for another request.
async fn open_cursor(
    vault: &TokenVault,
    caller: &Caller,
    record: &keys::Record<'_>,
    text: &str,
) -> Result<(Position, Container), Error> {
    let position = match cursor::decode(text) {
        // With the tenant's loaded keys only: bytes from a client must not make the keyring load others.
        Some(sealed) => {
            let keys = vault.keys.of(caller.tenant).await?;
            cursor::position(keys.open(record, &sealed))?
        }
        None => None,
    };
    let rule = "must be the `next` of the previous page, for the same filter";
    let invalid = || Error::Invalid(vec![FieldError::new("start", rule)]);
    let position = position.ok_or_else(invalid)?;
    let container =
        containers::container_of(&vault.container_numbers, caller.tenant, position.container)
            .await?
            .ok_or_else(invalid)?;
    Ok((position, container))
}

/// The filter in terms of the tables.
enum TableFilter {
    Kinds(Vec<i16>),
    Term(TermFilter),
    AnyTerm(Vec<Term>),
    /// Both fingerprints of a value, while the key is replaced.
    AnyFingerprint([Fingerprint; 2]),
}

impl TableFilter {
    /// `None` if no token can match.
    async fn new(
        vault: &TokenVault,
        caller: &Caller,
        filter: &Filter,
    ) -> Result<Option<Self>, Error> {
        let keys = vault.keys.of(caller.tenant).await?;
        Ok(match &filter.condition {
            None => Some(Self::Kinds(all_kinds())),
            Some(Condition::Kind(kind)) => Some(Self::Kinds(vec![*kind as i16])),
            Some(Condition::Data(value)) => {
                velocity::admit(&vault.velocity, caller, &numbers_in_search(value.expose()))
                    .await?;
                let domains = domains(&vault.search_expressions, caller.tenant).await?;
                Some(Self::AnyTerm(data_terms(&keys, &domains, value.expose())))
            }
            Some(Condition::Metadata { key, value }) => {
                let terms = searched_metadata_terms(&keys, key, value);
                Some(match terms[..] {
                    [term] => Self::Term(TermFilter::of(term)),
                    _ => Self::AnyTerm(terms),
                })
            }
            Some(Condition::Fingerprint(text)) => match fingerprint(text) {
                Some(print) => Some(Self::fingerprint(vault, caller, &keys, print).await?),
                None => None,
            },
        })
    }
}

impl TableFilter {
    async fn fingerprint(
        vault: &TokenVault,
        caller: &Caller,
        keys: &TenantKeys,
        print: Fingerprint,
    ) -> Result<Self, Error> {
        let tenant = caller.tenant;
        Ok(match find_other(&vault.db, tenant, keys, &print).await? {
            Some(other) => Self::AnyFingerprint([print, other]),
            None => Self::Term(TermFilter {
                term: fingerprint_term(&print),
                fingerprint: Some(print),
            }),
        })
    }

    /// Whether a token on the page meets the condition, as far as terms do not show it.
    fn is_met_by(&self, token: &Token) -> bool {
        match self {
            Self::AnyFingerprint(prints) => {
                let fingerprint = token.fingerprint;
                fingerprint.is_some_and(|print| prints.contains(&print))
            }
            Self::Kinds(_) | Self::Term(_) | Self::AnyTerm(_) => true,
        }
    }

    /// The terms that every token on the page must have.
    fn search_terms(&self) -> Option<SearchTerms> {
        match self {
            Self::Kinds(_) => None,
            Self::Term(filter) => Some(SearchTerms::any_of(vec![filter.term])),
            Self::AnyTerm(terms) => Some(SearchTerms::any_of(terms.clone())),
            Self::AnyFingerprint(prints) => {
                let terms = prints.iter().map(fingerprint_term).collect();
                Some(SearchTerms::any_of(terms))
            }
        }
    }
}

pub(super) fn all_kinds() -> Vec<i16> {
    TokenKind::ALL.into_iter().map(|kind| kind as i16).collect()
}

/// Decodes a fingerprint; `None` if it is invalid, so that no token has it.
fn fingerprint(text: &str) -> Option<Fingerprint> {
    let bytes = bs58::decode(text).into_vec().ok()?;
    <[u8; 32]>::try_from(bytes).ok().map(Into::into)
}

/// A scan of containers in descending path order.
struct Scan<'a> {
    vault: &'a TokenVault,
    caller: &'a Caller,
    table_filter: TableFilter,
}

/// A page of rows, and the position of the next page, if any.
type RowPage = (Vec<TokenRow>, Option<Position>);

impl Scan<'_> {
    /// Reads a page if the caller's rules cover all rows in reach. One extra row shows whether there is a next page.
    async fn page(
        &self,
        reach: &[Container],
        start: Option<(Position, Container)>,
        size: usize,
    ) -> Result<RowPage, Error> {
        let mut rows = self.rows(reach, start, size + 1).await?;
        let has_more = rows.len() > size && size > 0;
        rows.truncate(size);
        let last = rows.last().filter(|_| has_more).map(Position::of);
        Ok((rows, last))
    }

    /// Reads a page if the caller's rules cover only some of the rows in reach. The existence of other rows must not be
    /// disclosed: there is a next page only if it has a token, or if this request has reached its scan limit.
    async fn covered_page(
        &self,
        reach: &[Container],
        mut start: Option<(Position, Container)>,
        size: usize,
        permission: Permission,
    ) -> Result<RowPage, Error> {
        let mut page: Vec<TokenRow> = Vec::new();
        if size == 0 {
            return Ok((page, None));
        }
        for _ in 0..SCANS_MAX {
            let rows = self.rows(reach, start.take(), SCAN_ROWS).await?;
            let is_end = rows.len() < SCAN_ROWS;
            for row in rows {
                let container = container_of(self.vault, self.caller, &row).await?;
                let position = Position::of(&row);
                if is_covered(self.caller, permission, &row, &container) {
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

    /// Reads up to `limit` rows below the start. `reach` is in descending order without overlaps.
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
            let (end, sort_key) = match &start {
                // Already on previous pages.
                Some((_, start_container)) if start_container.as_str() < low => continue,
                Some((position, start_container)) if start_container.as_str() < end.as_str() => {
                    (start_container.as_str(), SortKey::of(position))
                }
                _ => (end.as_str(), SortKey::LOWEST),
            };
            rows.extend(
                self.rows_below(PageStart { low, end, sort_key }, missing)
                    .await?,
            );
        }
        Ok(rows)
    }

    async fn rows_below(
        &self,
        page_start: PageStart<'_>,
        limit: usize,
    ) -> Result<Vec<TokenRow>, storage::Error> {
        let (db, tenant) = (&self.vault.db, self.caller.tenant);
        match &self.table_filter {
            TableFilter::Kinds(kinds) => {
                store::of_kinds(db, tenant, kinds, page_start, limit).await
            }
            TableFilter::Term(filter) => {
                store::by_term(db, tenant, filter, page_start, limit).await
            }
            TableFilter::AnyFingerprint(prints) => {
                let terms = prints.map(|print| fingerprint_term(&print));
                store::by_any_term(db, tenant, &terms, page_start, limit).await
            }
            TableFilter::AnyTerm(terms) => {
                store::by_any_term(db, tenant, terms, page_start, limit).await
            }
        }
    }
}

/// The container that a row names. It is authenticated only when the row is opened.
pub(super) async fn container_of(
    vault: &TokenVault,
    caller: &Caller,
    row: &TokenRow,
) -> Result<Container, Error> {
    let container =
        containers::container_of(&vault.container_numbers, caller.tenant, row.container).await?;
    Ok(container.ok_or(keys::Error::Integrity)?)
}

/// Whether the caller's rules cover a row, before its attributes are authenticated by opening it.
pub(super) fn is_covered(
    caller: &Caller,
    permission: Permission,
    row: &TokenRow,
    container: &Container,
) -> bool {
    let id = row.id.text();
    let subject = Resource {
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

impl SortKey {
    fn of(position: &Position) -> Self {
        Self {
            created_at: position.created_at,
            token_id: position.token_id,
        }
    }
}

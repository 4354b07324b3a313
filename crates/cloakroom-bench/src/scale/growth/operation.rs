//! The operations measured at each size: statements of the service, and a future key rotation.

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Operation {
    Get,
    FirstPage,
    DeepPage,
    OneByTerm,
    PageByTerm,
    Equal,
    Create,
    CreateAtOnce,
    Sweep,
    Rotate,
}

impl Operation {
    pub(super) const ALL: [Self; 10] = [
        Self::Get,
        Self::FirstPage,
        Self::DeepPage,
        Self::OneByTerm,
        Self::PageByTerm,
        Self::Equal,
        Self::Create,
        Self::CreateAtOnce,
        Self::Sweep,
        Self::Rotate,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::FirstPage => "page 1",
            Self::DeepPage => "page 1000",
            Self::OneByTerm => "rare term",
            Self::PageByTerm => "common term",
            Self::Equal => "fingerprint",
            Self::Create => "create",
            Self::CreateAtOnce => "create, 16",
            Self::Sweep => "sweep",
            Self::Rotate => "rotate",
        }
    }

    /// Reads also write WAL, if they are the first to find a deleted row.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Create | Self::CreateAtOnce | Self::Sweep | Self::Rotate
        )
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Get => "`tokens::find`, random ids of all tokens",
            Self::FirstPage => "`token_queries::of_kinds`, all types, 20 tokens",
            Self::DeepPage => "the same behind 999 pages",
            Self::OneByTerm => "`token_queries::by_term`, one or two tokens have it",
            Self::PageByTerm => "the same, one of twenty tokens has it, 20 tokens",
            Self::Equal => "`tokens::find_equal`, as a create with deduplication asks",
            Self::Create => {
                "`tokens::insert` with one term and one record, a commit each, 1 client"
            }
            Self::CreateAtOnce => "the same, 16 clients; time of the whole divided by creates",
            Self::Sweep => "`tokens::sweep`, 1,000 rows a batch; per row",
            Self::Rotate => "1,000 rows read by key and their sealed values written; per row",
        }
    }
}

/// Executions of each operation per round.
pub(super) struct Counts {
    pub(super) single: usize,
    pub(super) pages: usize,
    pub(super) creates: usize,
    pub(super) creates_at_once: usize,
    pub(super) batches: usize,
}

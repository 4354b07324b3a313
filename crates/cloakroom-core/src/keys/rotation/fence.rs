//! The fence of keys in the database: no statement stores a value or a MAC under a version that was replaced.

/// SQL for a value that is sealed under a data key of the tenant: the value itself if statements may still store it, null
/// otherwise.
///
/// Columns of sealed values are not nullable, so a null fails the statement as a whole (`storage::Error::StaleKey`).
/// The version is part of the value (bytes 3 to 6). The subquery is one lookup by primary key.
///
/// ```ignore
/// "insert into token_intent (tenant_id, sealed) values ($1, ", fenced!("$1", "$2"), ")"
/// ```
#[macro_export]
macro_rules! fenced {
    ($tenant:expr, $sealed:expr) => {
        $crate::fenced_by!("3", $tenant, $sealed)
    };
}

/// Like `fenced!`, for a stored response.
#[macro_export]
macro_rules! fenced_response {
    ($tenant:expr, $sealed:expr) => {
        $crate::fenced_by!("6", $tenant, $sealed)
    };
}

/// Like `fenced!`, for a row with fingerprints or terms: their keys must not be older than the fence either. The epoch of
/// the keys (`TenantKeys::digest_epoch`) is compared in the row that is looked up anyway.
#[macro_export]
macro_rules! fenced_digests {
    ($tenant:expr, $sealed:expr, $epoch:expr) => {
        $crate::fenced_by!(
            "3",
            $tenant,
            $sealed,
            concat!(
                "
                  and fence.digest_epoch <= ",
                $epoch
            )
        )
    };
}

/// The version must be active, or retiring: until all nodes know its successor.
#[macro_export]
macro_rules! fenced_by {
    ($purpose:literal, $tenant:expr, $sealed:expr) => {
        $crate::fenced_by!($purpose, $tenant, $sealed, "")
    };
    ($purpose:literal, $tenant:expr, $sealed:expr, $condition:expr) => {
        concat!(
            "(
                select ",
            $sealed,
            "::bytea
                from tenant_key fence
                where fence.tenant_id = ",
            $tenant,
            "
                  and fence.purpose = ",
            $purpose,
            "
                  and fence.version = ('x' || encode(substring(",
            $sealed,
            "::bytea from 3 for 4), 'hex'))::bit(32)::integer
                  and fence.state in (2, 5)",
            $condition,
            "
            )"
        )
    };
}

/// SQL for a MAC under the control key: the MAC itself if statements may still store it, null otherwise, which fails the
/// statement like `fenced!`. The version is in its first four bytes. Purpose 7 is control.
#[macro_export]
macro_rules! fenced_mac {
    ($mac:expr) => {
        $crate::fenced_mac!($mac, "")
    };
    ($mac:expr, $condition:expr) => {
        concat!(
            "(
                select ",
            $mac,
            "::bytea
                from system_key fence
                where fence.purpose = 7
                  and fence.version = ('x' || encode(substring(",
            $mac,
            "::bytea from 1 for 4), 'hex'))::bit(32)::integer
                  and fence.state in (2, 5)",
            $condition,
            "
            )"
        )
    };
}

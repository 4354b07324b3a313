//! Buckets: the parts of a tenant whose rows share one access state.
//!
//! Changes in different buckets do not wait for each other, and a check reads few rows.

use uuid::Uuid;

/// A part of a tenant's rows. Applications and their keys are in one bucket, so that one check covers a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(i16);

impl Bucket {
    /// The row of the tenant, with its settings and quotas.
    pub const TENANT: Self = Self(0);
    /// The tenant's deletion, branding, webhooks and requested exports.
    pub const RESOURCES: Self = Self(1);
    /// The tenant's keys; for tenant number 0, those of the vault.
    pub const KEYS: Self = Self(256);

    /// The bucket of an application and its keys; `application_bucket!` is the same in SQL.
    pub fn of_application(id: Uuid) -> Self {
        let [.., last] = id.into_bytes();
        Self(2 + i16::from(last) % 190)
    }

    /// The bucket of a proxy; `proxy_bucket!` is the same in SQL.
    pub fn of_proxy(id: Uuid) -> Self {
        let [.., last] = id.into_bytes();
        Self(192 + i16::from(last) % 64)
    }

    /// A bucket as stored.
    pub(super) fn from_number(number: i16) -> Self {
        Self(number)
    }

    /// Whether the sweep deletes its rows after the tenant was deleted. The tenant's own row and its keys remain.
    pub fn ends_with_tenant(self) -> bool {
        self != Self::TENANT && self != Self::KEYS
    }

    pub fn number(self) -> i16 {
        self.0
    }
}

/// SQL for the bucket of an application, given the column of its id.
#[macro_export]
macro_rules! application_bucket {
    ($id:expr) => {
        concat!("(2 + get_byte(uuid_send(", $id, "), 15) % 190)")
    };
}

/// SQL for the bucket of a proxy, given the column of its id.
#[macro_export]
macro_rules! proxy_bucket {
    ($id:expr) => {
        concat!("(192 + get_byte(uuid_send(", $id, "), 15) % 64)")
    };
}

/// SQL for an array of the row MACs of a tenant in one table, of rows that satisfy a condition.
#[macro_export]
macro_rules! row_macs {
    ($table:literal, $tenant:expr $(, $condition:expr)?) => {
        concat!(
            "array(
                   select fellow.row_mac
                   from ",
            $table,
            " fellow
                   where fellow.tenant_id = ",
            $tenant,
            $("
                     and ",
            $condition,)?
            "
               )"
        )
    };
}

/// SQL for an array of the row MACs of applications and keys in the bucket of an application.
#[macro_export]
macro_rules! application_bucket_macs {
    ($tenant:expr, $id:expr) => {
        concat!(
            $crate::row_macs!(
                "application",
                $tenant,
                concat!(
                    $crate::application_bucket!("fellow.application_id"),
                    " = ",
                    $crate::application_bucket!($id)
                )
            ),
            " || ",
            $crate::row_macs!(
                "application_key",
                $tenant,
                concat!(
                    $crate::application_bucket!("fellow.application_id"),
                    " = ",
                    $crate::application_bucket!($id)
                )
            )
        )
    };
}

/// SQL for an array of the row MACs of the proxies in the bucket of a proxy.
#[macro_export]
macro_rules! proxy_bucket_macs {
    ($tenant:expr, $id:expr) => {
        $crate::row_macs!(
            "proxy",
            $tenant,
            concat!(
                $crate::proxy_bucket!("fellow.proxy_id"),
                " = ",
                $crate::proxy_bucket!($id)
            )
        )
    };
}

/// SQL for an array of the row MACs of a tenant's deletion, branding, webhooks and requested exports.
#[macro_export]
macro_rules! resource_bucket_macs {
    ($tenant:expr) => {
        concat!(
            $crate::row_macs!("tenant_deletion", $tenant),
            " || ",
            $crate::row_macs!("branding", $tenant),
            " || ",
            $crate::row_macs!("webhook", $tenant),
            " || ",
            $crate::row_macs!("export_request", $tenant)
        )
    };
}

/// SQL that joins the state of a bucket under an alias; the row is null if the bucket has none.
#[macro_export]
macro_rules! join_access_state {
    ($alias:literal, $tenant:expr, $bucket:expr) => {
        concat!(
            "
        left join access_state ",
            $alias,
            "
          on ",
            $alias,
            ".tenant_id = ",
            $tenant,
            "
         and ",
            $alias,
            ".bucket = ",
            $bucket
        )
    };
}

/// SQL for the columns of a joined state and an array of row MACs, as `StoredBucket::read` expects them.
#[macro_export]
macro_rules! access_state_columns {
    ($alias:literal, $macs:expr) => {
        concat!(
            $alias,
            ".generation, ",
            $alias,
            ".digest, ",
            $alias,
            ".row_mac,
               ",
            $macs
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_applications_and_proxies_are_disjoint_and_within_bounds() {
        for last in 0..=u8::MAX {
            let mut bytes = [7; 16];
            bytes[15] = last;
            let id = Uuid::from_bytes(bytes);

            let application = Bucket::of_application(id).number();
            let proxy = Bucket::of_proxy(id).number();

            assert!((2..=191).contains(&application), "{application}");
            assert!((192..=255).contains(&proxy), "{proxy}");
        }
    }
}

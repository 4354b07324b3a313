//! The table of all deprecated features: for requests that use one, for operators and for the documentation.
//!
//! [`Deprecation`] explains the columns.

use http::Method;
use jiff::civil::{Date, date};

use super::deprecation::{Deprecation, DeprecationTreatment};

/// Defines an enum with one variant per row, and the rows.
macro_rules! deprecations {
    ($($name:ident: $row:expr,)+) => {
        /// A deprecated feature that a request may use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DeprecatedFeature {
            $($name),+
        }

        /// All deprecated features, in the order of the documentation.
        pub const ALL: &[DeprecatedFeature] = &[$(DeprecatedFeature::$name),+];

        impl DeprecatedFeature {
            /// The row of this feature.
            pub fn row(self) -> &'static Deprecation {
                match self {
                    $(Self::$name => {
                        static ROW: Deprecation = $row;
                        &ROW
                    })+
                }
            }
        }
    };
}

impl DeprecatedFeature {
    /// Finds the deprecation of an operation as a whole. `route` is the template of the path.
    pub fn of_operation(method: &Method, route: &str) -> Option<Self> {
        // Every route of GET accepts HEAD, too.
        let method = match *method {
            Method::HEAD => Method::GET.as_str(),
            _ => method.as_str(),
        };
        let covers_operation = |feature: &&Self| {
            let mut operations = feature.row().operations.iter();
            operations.any(|operation| operation.split_once(' ') == Some((method, route)))
        };
        ALL.iter().find(covers_operation).copied()
    }
}

/// A known date, for `since` and `until`.
const fn day(year: i16, month: i8, day: i8) -> Option<Date> {
    Some(date(year, month, day))
}

deprecations! {
    ListTokensV1: Deprecation {
        name: "list_tokens_v1",
        feature: "List Tokens v1",
        used_by: "`GET /tokens`",
        operations: &["GET /tokens"],
        since: day(2025, 1, 3),
        until: day(2025, 3, 1),
        replacement: "use GET /v2/tokens",
        successor: Some("/v2/tokens"),
        treatment: DeprecationTreatment::Served(|config| config.v1_tokens),
        behavior: "Served in full; 410 with `deprecated.v1_tokens = \"gone\"`.",
        migration: "Pages have a cursor instead of a number. The parameter `id` and several metadata \
            parameters at once are not supported, and metadata is compared exactly, with regard to case.",
    },
    SearchTokensV1: Deprecation {
        name: "search_tokens_v1",
        feature: "Search Tokens v1",
        used_by: "`POST /tokens/search`",
        operations: &["POST /tokens/search"],
        since: day(2025, 1, 3),
        until: day(2025, 3, 1),
        replacement: "use POST /v2/tokens/search",
        successor: Some("/v2/tokens/search"),
        treatment: DeprecationTreatment::Served(|config| config.v1_tokens),
        behavior: "Served in full; 410 with `deprecated.v1_tokens = \"gone\"`.",
        migration: "Pages have a cursor instead of a number. Terms on `id` and several metadata terms at \
            once are not supported, and metadata is compared exactly. Search for one term and filter the \
            results, store the combination in one metadata entry, or encode it in a custom id.",
    },
    ReactorCallbackUrl: Deprecation {
        name: "reactor_callback_url",
        feature: "The callback_url of asynchronous reactors",
        used_by: "`callback_url` in the body of `POST /reactors/{id}/react` or `…/react-async`",
        operations: &[],
        since: day(2024, 11, 1),
        until: day(2025, 1, 15),
        replacement: "use the events of reactors and POST /reactors/{id}/react-async",
        successor: None,
        treatment: DeprecationTreatment::Rejected,
        behavior: "400 that names `callback_url`. This vault has no reactors yet: without the \
            attribute the response is 501.",
        migration: "Call `react-async`, and take the result from the webhook event.",
    },
    LegacyRateLimits: Deprecation {
        name: "legacy_rate_limits",
        feature: "Keys of the older format, and their limits",
        used_by: "a request with an imported key of the older format",
        operations: &[],
        since: day(2024, 6, 10),
        until: day(2024, 7, 16),
        replacement: "create a new key for the application",
        successor: None,
        treatment: DeprecationTreatment::Accepted,
        behavior: "Such keys can be imported (`cloakroom key import`), but not created. They work, with \
            their own rate limits.",
        migration: "Create a second key for the application, deploy it, then delete the older one.",
    },
    RegenerateKey: Deprecation {
        name: "regenerate_key",
        feature: "Regenerating the key of an application",
        used_by: "`POST /applications/{id}/regenerate`",
        operations: &["POST /applications/{id}/regenerate"],
        since: day(2024, 4, 17),
        until: day(2024, 10, 17),
        replacement: "create a new key with POST /applications/{id}/keys, then delete the old one with \
            DELETE /applications/{id}/keys/{key_id}",
        successor: None,
        treatment: DeprecationTreatment::Gone,
        behavior: "410.",
        migration: "An application has up to three keys, so a new one can be deployed everywhere before the \
            old one is deleted.",
    },
    ComplexSearch: Deprecation {
        name: "complex_search",
        feature: "Complex queries of Search Tokens v1",
        used_by: "a `query` on other attributes than `id`, `data` and `metadata.KEY`, with several \
            attributes, `OR` or a negation",
        operations: &[],
        since: day(2024, 1, 23),
        until: day(2024, 1, 23),
        replacement: "search for a single term",
        successor: None,
        treatment: DeprecationTreatment::Rejected,
        behavior: "400 that names `query`.",
        migration: "`POST /v2/tokens/search` supports single terms on type, fingerprint and container as well.",
    },
    ReactorFormulas: Deprecation {
        name: "reactor_formulas",
        feature: "Reactor formulas",
        used_by: "`/reactor-formulas`, and `formula` in the body of a reactor",
        operations: &[
            "GET /reactor-formulas",
            "POST /reactor-formulas",
            "GET /reactor-formulas/{id}",
            "PUT /reactor-formulas/{id}",
            "DELETE /reactor-formulas/{id}",
        ],
        since: day(2023, 10, 16),
        until: day(2024, 2, 14),
        replacement: "write the code into the reactor, as `code`",
        successor: None,
        treatment: DeprecationTreatment::Gone,
        behavior: "The paths return 410; `formula` in `POST /reactors`, `PUT` or `PATCH /reactors/{id}` \
            is a 400 that names it. This vault has no reactors yet: without the attribute the response is 501.",
        migration: "Configuration and request parameters of reactors with code are not validated.",
    },
    ProxyReactors: Deprecation {
        name: "proxy_reactors",
        feature: "The reactors of proxies",
        used_by: "`request_reactor_id` or `response_reactor_id`, other than null, in the body of a proxy",
        operations: &[],
        since: day(2022, 11, 30),
        until: day(2023, 3, 31),
        replacement: "use request_transform and response_transform",
        successor: None,
        treatment: DeprecationTreatment::Rejected,
        behavior: "400 that names the attribute. Null is accepted.",
        migration: "A transform holds the code that the reactor had.",
    },
    TokenPrivacy: Deprecation {
        name: "token_privacy",
        feature: "The privacy settings of tokens",
        used_by: "`privacy` in the body of a new token",
        operations: &[],
        since: day(2022, 10, 13),
        until: day(2023, 2, 1),
        replacement: "use containers and access rules",
        successor: None,
        treatment: DeprecationTreatment::Accepted,
        behavior: "Without `containers`, classification and impact level select the container \
            `/<classification>/<impact_level>/`; each defaults to that of the token type. \
            `restriction_policy` is ignored, and `privacy` is never returned.",
        migration: "Set the container, and control access to it with access rules.",
    },
    ClassificationPermissions: Deprecation {
        name: "classification_permissions",
        feature: "Permissions by classification",
        used_by: "a permission such as `token:pci:read:high`",
        operations: &[],
        since: day(2022, 10, 13),
        until: None,
        replacement: "use permissions such as token:read with access rules",
        successor: None,
        treatment: DeprecationTreatment::Rejected,
        behavior: "400 that names the attribute: such a permission does not exist.",
        migration: "An access rule grants permissions for one container and everything below it.",
    },
    ExpiringApplications: Deprecation {
        name: "expiring_applications",
        feature: "Applications of the type expiring",
        used_by: "`expiring` as the `type` of an application",
        operations: &[],
        since: None,
        until: None,
        replacement: "use sessions of a public application",
        successor: None,
        treatment: DeprecationTreatment::Rejected,
        behavior: "400 that names `type`. They were removed in January 2023.",
        migration: "`POST /sessions` creates a key that is valid for three minutes, and `POST /sessions/authorize` \
            grants its permissions.",
    },
    ThreedsPan: Deprecation {
        name: "threeds_pan",
        feature: "The pan of 3-D Secure sessions",
        used_by: "`pan` in the body of `POST /3ds/sessions`, which holds the id of a token",
        operations: &[],
        since: None,
        until: None,
        replacement: "use token_id",
        successor: None,
        treatment: DeprecationTreatment::Accepted,
        behavior: "Means `token_id`. `pan_token_id` is returned beside `token_id`.",
        migration: "Both names hold the same id.",
    },
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_have_unique_names_and_ordered_dates() {
        let names: BTreeSet<&str> = ALL.iter().map(|feature| feature.row().name).collect();
        assert_eq!(names.len(), ALL.len());
        for feature in ALL {
            let row = feature.row();
            if let (Some(since), Some(until)) = (row.since, row.until) {
                assert!(since <= until, "{}", row.name);
            }
            assert!(!row.replacement.ends_with('.'), "{}", row.name);
        }
    }
}

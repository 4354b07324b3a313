//! OpenAPI schemas of formulas and their filters. The catalog's own types are serialized.

#![expect(dead_code, reason = "documents the serialization of other types")]

use utoipa::{OpenApi, ToSchema};

/// The configuration and capabilities of connections to one payment processor.
#[derive(ToSchema)]
pub(super) struct FormulaBody {
    /// Processor and method.
    #[schema(pattern = "^[a-z0-9]+-card$", example = "stripe-card")]
    id: String,
    #[schema(min_length = 1)]
    display_name: String,
    method: FormulaMethodBody,
    /// The configuration values of a connection.
    fields: Vec<FormulaFieldBody>,
    /// ISO 4217, sorted.
    supported_currencies: Vec<String>,
    /// ISO 3166-1 alpha-2, sorted.
    supported_countries: Vec<String>,
    supported_features: FormulaFeaturesBody,
}

/// Payment method of a connection.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum FormulaMethodBody {
    Card,
}

/// A configuration value of a connection.
#[derive(ToSchema)]
pub(super) struct FormulaFieldBody {
    #[schema(pattern = "^[a-z][a-z0-9_]*$")]
    key: String,
    #[schema(min_length = 1)]
    display_name: String,
    required: bool,
    format: FormulaFormatBody,
    /// Whether it is a credential.
    secret: bool,
}

/// How a configuration value is entered.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum FormulaFormatBody {
    Text,
    Multiline,
}

/// Capabilities of a connection.
#[derive(ToSchema)]
pub(super) struct FormulaFeaturesBody {
    /// Passes on 3-D Secure results of another provider.
    three_d_secure_pass_through: bool,
    /// Captures a payment after its authorization.
    delayed_capture: bool,
    /// Captures a part of the authorized amount.
    partial_capture: bool,
    /// Refunds a part of the captured amount.
    partial_refunds: bool,
    /// Refunds the captured amount.
    refunds: bool,
    /// Authorizes a zero amount to verify a card.
    zero_auth: bool,
    /// Voids an authorization that is not captured.
    void: bool,
}

/// The name of a feature.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum FormulaFeatureBody {
    ThreeDSecurePassThrough,
    DelayedCapture,
    PartialCapture,
    PartialRefunds,
    Refunds,
    ZeroAuth,
    Void,
}

/// Schemas that only parameters refer to.
#[derive(OpenApi)]
#[openapi(components(schemas(FormulaFeatureBody, CurrencyBody, CountryBody)))]
pub(super) struct Parameters;

/// Three letters, as in ISO 4217, in any case.
#[derive(ToSchema)]
#[schema(pattern = "^[A-Za-z]{3}$")]
pub(super) struct CurrencyBody(String);

/// Two letters, as in ISO 3166-1, in any case.
#[derive(ToSchema)]
#[schema(pattern = "^[A-Za-z]{2}$")]
pub(super) struct CountryBody(String);

#[cfg(test)]
mod tests {
    use cloakroom_formulas::{FORMULAS, Feature};
    use serde_json::Value;

    #[test]
    fn schemas_match_the_serialized_catalog() {
        let document =
            serde_json::to_value(crate::formulas::routes::<()>().into_openapi()).unwrap();
        let schemas = &document["components"]["schemas"];
        let described = |name: &str| -> Vec<String> {
            let properties = schemas[name]["properties"].as_object().unwrap();
            properties.keys().cloned().collect()
        };
        let sent = |value: &Value| -> Vec<String> {
            let members = value.as_object().unwrap();
            members.keys().cloned().collect()
        };
        for formula in FORMULAS {
            let formula = serde_json::to_value(formula).unwrap();
            assert_eq!(sent(&formula), described("FormulaBody"));
            assert_eq!(sent(&formula["fields"][0]), described("FormulaFieldBody"));
            let features = sent(&formula["supported_features"]);
            assert_eq!(features, described("FormulaFeaturesBody"));
        }
        let names: Vec<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
        let documented = &schemas["FormulaFeatureBody"]["enum"];
        assert_eq!(documented, &serde_json::json!(names));
    }
}

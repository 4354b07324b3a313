//! How formulas and their filters are described. What is sent is the catalog's own.

#![expect(dead_code, reason = "describes what other types are called")]

use utoipa::{OpenApi, ToSchema};

/// What a connection to one payment processor asks for and can do.
#[derive(ToSchema)]
pub(super) struct FormulaBody {
    /// The processor and the method.
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

/// How a connection takes payments.
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

/// What a connection can do.
#[derive(ToSchema)]
pub(super) struct FormulaFeaturesBody {
    /// 3-D Secure results are handed on.
    three_d_secure_pass_through: bool,
    /// Authorized now, captured later.
    delayed_capture: bool,
    /// A part of what was authorized is captured.
    partial_capture: bool,
    /// A part of what was captured is given back.
    partial_refunds: bool,
    /// What was captured is given back.
    refunds: bool,
    /// An amount of nothing is authorized, to try the card.
    zero_auth: bool,
    /// What was authorized and not yet captured is let go.
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

/// What parameters refer to, which nothing else would bring along.
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
    fn what_is_sent_is_what_is_described() {
        let document = serde_json::to_value(crate::router::document()).unwrap();
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
        let told = &schemas["FormulaFeatureBody"]["enum"];
        assert_eq!(told, &serde_json::json!(names));
    }
}

//! The OpenAPI document is complete.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::router::document;

fn json() -> Value {
    serde_json::to_value(document()).unwrap()
}

/// Adds `Schema.property` of every property without a description, its schema's included.
fn collect_undescribed(root: &Value, name: &str, schema: &Value, found: &mut BTreeSet<String>) {
    for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
        let target = schema["$ref"].as_str().map(|reference| {
            let pointer = reference.trim_start_matches('#');
            root.pointer(pointer).unwrap()
        });
        let is_described = [Some(schema), target]
            .into_iter()
            .flatten()
            .any(|schema| schema["description"].is_string());
        if !is_described {
            found.insert(format!("{name}.{property}"));
        }
        collect_undescribed(root, name, schema, found);
    }
    if !schema.is_object() {
        return;
    }
    let lists = ["oneOf", "allOf", "anyOf"].map(|list| schema[list].as_array());
    let inner = lists.into_iter().flatten().flatten();
    for schema in inner.chain([&schema["items"], &schema["additionalProperties"]]) {
        collect_undescribed(root, name, schema, found);
    }
}

#[test]
fn every_example_belongs_to_an_operation() {
    let mut examples = Examples::read();
    let mut document = document();
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        examples.add_to(operation);
    }

    assert_eq!(examples.unused(), [""; 0]);
    assert!(json().to_string().contains("\"example\":"));
}

/// Media types of which a recorded example shows nothing.
const BINARY: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "text/javascript"];
/// Responses to a page in a cardholder's browser, among them that of an expired checkout, and long documents.
const WITHOUT_EXAMPLE: [&str; 6] = [
    "describe",
    "notify_challenge_completion",
    "notify_method_completion",
    "show_checkout",
    "show_error_catalog",
    "show_hosted_threeds_page",
];

#[test]
fn every_body_has_an_example() {
    let mut document = document();
    let mut missing = Vec::new();

    for operation in document.paths.paths.values_mut().flat_map(operations) {
        let id = operation.operation_id.clone().unwrap_or_default();
        let requests = operation.request_body.iter().flat_map(|body| match body {
            RefOr::T(body) => body.content.iter().collect(),
            RefOr::Ref(_) => Vec::new(),
        });
        let responses = operation.responses.responses.values();
        let responses = responses.flat_map(|response| match response {
            RefOr::T(response) => response.content.iter().collect(),
            RefOr::Ref(_) => Vec::new(),
        });
        for (media_type, content) in requests.chain(responses) {
            let has_example = match content {
                RefOr::T(content) => content.example.is_some() || !content.examples.is_empty(),
                RefOr::Ref(_) => true,
            };
            let is_exempt =
                BINARY.contains(&media_type.as_str()) || WITHOUT_EXAMPLE.contains(&id.as_str());
            if !has_example && !is_exempt {
                missing.push(format!("{id} {media_type}"));
            }
        }
    }

    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_property_is_described() {
    let root = json();
    let mut found = BTreeSet::new();

    for (name, schema) in root["components"]["schemas"].as_object().unwrap() {
        collect_undescribed(&root, name, schema, &mut found);
    }

    assert_eq!(found, BTreeSet::new());
}

#[test]
fn every_description_is_used() {
    let root = json();
    let schemas = root["components"]["schemas"].as_object().unwrap();
    let text = root.to_string();

    let descriptions = Descriptions::read();
    let unused: Vec<(&str, &str)> = descriptions
        .entries()
        .filter(|(schema, property)| {
            let is_known = *schema == "*"
                || schemas
                    .keys()
                    .any(|name| name.split('_').any(|part| part == *schema));
            !is_known || !text.contains(&format!("\"{property}\":{{"))
        })
        .collect();

    assert_eq!(unused, []);
}

#[test]
fn operation_ids_are_unique() {
    let mut document = document();
    let mut seen = BTreeSet::new();

    let operations = document.paths.paths.values_mut().flat_map(operations);
    let repeated: Vec<String> = operations
        .filter_map(|operation| operation.operation_id.clone())
        .filter(|id| !seen.insert(id.clone()))
        .collect();

    assert_eq!(repeated, [""; 0]);
}

#[test]
fn every_operation_declares_whether_it_requires_a_key() {
    let mut document = document();
    let mut operations = document.paths.paths.values_mut().flat_map(operations);

    assert!(operations.all(|operation| operation.security.is_some()));
}

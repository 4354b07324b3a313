//! Descriptions of properties that have the same meaning in many schemas, or whose names come from a specification.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Schema};
use utoipa::openapi::{Components, RefOr};

/// Descriptions by schema and property. Those of the schema `*` apply to every schema without its own.
const DESCRIPTIONS: &str = include_str!("../../../../docs/api/descriptions.json");
const EVERY_SCHEMA: &str = "*";

pub(super) struct Descriptions(BTreeMap<String, BTreeMap<String, String>>);

impl Descriptions {
    /// An invalid file has no descriptions, which fails a test.
    pub(super) fn read() -> Self {
        Self(serde_json::from_str(DESCRIPTIONS).unwrap_or_default())
    }

    /// Describes every property that its handler does not describe.
    pub(super) fn add_to(&self, components: &mut Components) {
        for (name, schema) in &mut components.schemas {
            self.describe(name, schema);
        }
    }

    fn describe(&self, name: &str, schema: &mut RefOr<Schema>) {
        let RefOr::T(schema) = schema else { return };
        match schema {
            Schema::Object(object) => {
                for (property, schema) in &mut object.properties {
                    if let Some(text) = self.find(name, property) {
                        set_description(schema, text);
                    }
                    self.describe(name, schema);
                }
                if let Some(more) = &mut object.additional_properties
                    && let AdditionalProperties::RefOr(schema) = &mut **more
                {
                    self.describe(name, schema);
                }
            }
            Schema::Array(array) => {
                if let ArrayItems::RefOrSchema(items) = &mut array.items {
                    self.describe(name, items);
                }
            }
            Schema::OneOf(one) => one.items.iter_mut().for_each(|it| self.describe(name, it)),
            Schema::AllOf(all) => all.items.iter_mut().for_each(|it| self.describe(name, it)),
            Schema::AnyOf(any) => any.items.iter_mut().for_each(|it| self.describe(name, it)),
            _ => {}
        }
    }

    /// The name of a generic schema contains those of its parameters: `PageBody_TokenBody`.
    fn find(&self, schema: &str, property: &str) -> Option<&str> {
        let names = schema.split('_').chain([EVERY_SCHEMA]);
        let mut found = names.filter_map(|name| self.0.get(name)?.get(property));
        found.next().map(String::as_str)
    }

    /// Every schema and property of the file.
    #[cfg(test)]
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(schema, properties)| {
            let properties = properties.keys().map(String::as_str);
            properties.map(move |property| (schema.as_str(), property))
        })
    }
}

/// Sets a description unless there is one.
fn set_description(schema: &mut RefOr<Schema>, text: &str) {
    let description = match schema {
        RefOr::Ref(reference) => {
            if reference.description.is_empty() {
                text.clone_into(&mut reference.description);
            }
            return;
        }
        RefOr::T(Schema::Object(object)) => &mut object.description,
        RefOr::T(Schema::Array(array)) => &mut array.description,
        RefOr::T(Schema::OneOf(one)) => &mut one.description,
        RefOr::T(Schema::AllOf(all)) => &mut all.description,
        RefOr::T(Schema::AnyOf(any)) => &mut any.description,
        RefOr::T(_) => return,
    };
    description.get_or_insert_with(|| text.to_owned());
}

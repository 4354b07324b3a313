//! Examples of request and response bodies, in files: they are longer than the handlers that they would precede.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::Response;
use utoipa::openapi::{Components, Content, Ref, RefOr};

/// Written by hand; `cargo xtask docs --execute` sends them.
const REQUESTS: &str = include_str!("../../../../docs/api/examples.json");
/// Recorded by `cargo xtask docs --execute`.
const RESPONSES: &str = include_str!("../../../../docs/api/responses.json");
/// Recorded too: a problem for each status. Those of the proxy have a body of their own.
const PROBLEMS: &str = include_str!("../../../../docs/api/problems.json");

/// Examples that no operation has taken yet, by operation id.
pub(super) struct Examples {
    requests: BTreeMap<String, BTreeMap<String, RequestExample>>,
    responses: BTreeMap<String, ResponseExample>,
    problems: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct RequestExample {
    summary: String,
    value: Value,
}

#[derive(Deserialize)]
struct ResponseExample {
    status: String,
    value: Value,
}

impl Examples {
    /// Invalid files have no examples, which fails a test.
    pub(super) fn read() -> Self {
        Self {
            requests: serde_json::from_str(REQUESTS).unwrap_or_default(),
            responses: serde_json::from_str(RESPONSES).unwrap_or_default(),
            problems: serde_json::from_str(PROBLEMS).unwrap_or_default(),
        }
    }

    /// Moves the examples of an operation into the descriptions of its bodies.
    pub(super) fn add_to(&mut self, operation: &mut Operation) {
        let id = operation.operation_id.clone().unwrap_or_default();
        if let Some(RefOr::T(body)) = &mut operation.request_body
            && let Some(RefOr::T(content)) = body.content.values_mut().next()
            && let Some(examples) = self.requests.remove(&id)
        {
            let examples = examples.into_iter().map(|(name, example)| {
                let builder = ExampleBuilder::new().summary(example.summary);
                (name, RefOr::T(builder.value(Some(example.value)).build()))
            });
            content.examples = examples.collect();
        }
        if let Some(example) = self.responses.remove(&id) {
            match response_content(operation, &example.status) {
                Some(content) => content.example = Some(example.value),
                None => {
                    self.responses.insert(id, example);
                }
            }
        }
        for (status, response) in &mut operation.responses.responses {
            if let RefOr::T(response) = response {
                self.add_problem(status, response);
            }
        }
    }

    /// Refers to the problem of a status, in a response that has no example of its own.
    fn add_problem(&self, status: &str, response: &mut Response) {
        for (media_type, content) in &mut response.content {
            let name = match media_type.as_str() {
                "application/problem+json" => status.to_owned(),
                "application/json" => format!("proxy_{status}"),
                _ => continue,
            };
            if let RefOr::T(content) = content
                && content.example.is_none()
                && self.problems.contains_key(&name)
            {
                let path = format!("#/components/examples/{}", component_name(&name));
                let example = RefOr::Ref(Ref::new(path));
                content.examples.insert("problem".to_owned(), example);
            }
        }
    }

    /// Adds the problems that responses refer to.
    pub(super) fn add_problems(&self, components: &mut Components) {
        for (name, value) in &self.problems {
            let builder = ExampleBuilder::new().value(Some(value.clone()));
            let example = RefOr::T(builder.build());
            components.examples.insert(component_name(name), example);
        }
    }

    /// Operation ids of examples that no operation has taken.
    #[cfg(test)]
    pub(super) fn unused(self) -> Vec<String> {
        let requests = self.requests.into_keys();
        requests.chain(self.responses.into_keys()).collect()
    }
}

fn component_name(problem: &str) -> String {
    format!("problem_{problem}")
}

fn response_content<'a>(operation: &'a mut Operation, status: &str) -> Option<&'a mut Content> {
    match operation.responses.responses.get_mut(status) {
        Some(RefOr::T(response)) => match response.content.values_mut().next() {
            Some(RefOr::T(content)) => Some(content),
            _ => None,
        },
        _ => None,
    }
}

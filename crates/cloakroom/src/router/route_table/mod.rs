//! Matches requests to routes and their authentication.

use std::collections::BTreeMap;

use cloakroom_core::gates::authentication::KeyLookup;
use cloakroom_platform::api::Route;
use cloakroom_proxy::invoke::InvocationPath;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Uri};
use utoipa::openapi::{OpenApi, PathItem};

/// Authentication of a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Authentication {
    /// None.
    Open,
    /// An API key, looked up on these database servers.
    Keyed(KeyLookup),
    /// An API key, unless the proxy that is invoked is open. The body is streamed.
    Proxy,
}

/// Result of matching a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum RouteMatch<'a> {
    Handler(&'a Route, Authentication),
    /// A path with other methods, which the `Allow` header lists.
    MethodNotAllowed(&'a Route, &'a HeaderValue),
    NotFound,
}

impl<'a> RouteMatch<'a> {
    pub(super) fn route(self) -> Option<&'a Route> {
        match self {
            Self::Handler(route, _) | Self::MethodNotAllowed(route, _) => Some(route),
            Self::NotFound => None,
        }
    }
}

/// All paths of the API, taken from the OpenAPI descriptions of the handlers. Consulted before any
/// other work for a request.
pub(super) struct RouteTable {
    prefix: String,
    paths: matchit::Router<PathEntry>,
}

/// A path and its methods.
struct PathEntry {
    route: Route,
    methods: Vec<(Method, Authentication)>,
    /// Value of the `Allow` header.
    allowed: HeaderValue,
}

impl RouteTable {
    /// Builds the table from OpenAPI documents, with all paths under the same prefix.
    pub(super) fn new(
        prefix: &str,
        parts: &[(Authentication, OpenApi)],
    ) -> Result<Self, matchit::InsertError> {
        let mut all: BTreeMap<&str, Vec<(Method, Authentication)>> = BTreeMap::new();
        for (authentication, part) in parts {
            for (path, item) in &part.paths.paths {
                let methods = described_methods(item).map(|method| (method, *authentication));
                all.entry(path).or_default().extend(methods);
            }
        }
        let mut paths = matchit::Router::new();
        for (path, methods) in all {
            let entry = PathEntry {
                route: Route(path.into()),
                allowed: allowed(&methods),
                methods,
            };
            paths.insert(path, entry)?;
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            paths,
        })
    }

    /// Matches a request. Afterwards its path has neither the prefix nor a trailing slash.
    ///
    /// A path with an empty segment does not match: `//tokens` would bypass the rules of a proxy
    /// that protect `/tokens`. What follows `/proxy` is the destination's, and kept verbatim as an
    /// extension of the request.
    pub(super) fn find<B>(&self, request: &mut Request<B>) -> RouteMatch<'_> {
        if !self.prefix.is_empty() {
            match without_prefix(&self.prefix, request.uri()) {
                Some(inside) => *request.uri_mut() = inside,
                None => return RouteMatch::NotFound,
            }
        }
        if let Some(path) = InvocationPath::of(request.uri()) {
            // The handler needs the path as it was sent; matching needs one segment.
            let is_root = path.suffix.is_empty();
            let matched = if is_root { "/proxy" } else { "/proxy/path" };
            *request.uri_mut() = Uri::from_static(matched);
            request.extensions_mut().insert(path);
        }
        if request.uri().path().contains("//") {
            return RouteMatch::NotFound;
        }
        if let Some(trimmed) = without_trailing_slash(request.uri()) {
            *request.uri_mut() = trimmed;
        }
        let Ok(found) = self.paths.at(request.uri().path()) else {
            return RouteMatch::NotFound;
        };
        // A path with GET also supports HEAD.
        let method = match *request.method() {
            Method::HEAD => &Method::GET,
            ref method => method,
        };
        let entry = found.value;
        let mut methods = entry.methods.iter();
        match methods.find(|(known, _)| known == method) {
            Some((_, authentication)) => RouteMatch::Handler(&entry.route, *authentication),
            None => RouteMatch::MethodNotAllowed(&entry.route, &entry.allowed),
        }
    }
}

fn allowed(methods: &[(Method, Authentication)]) -> HeaderValue {
    let names = methods.iter().map(|(method, _)| match *method {
        Method::GET => "GET,HEAD",
        ref method => method.as_str(),
    });
    let names: Vec<&str> = names.collect();
    // Names of methods are valid header values.
    HeaderValue::try_from(names.join(",")).unwrap_or(HeaderValue::from_static(""))
}

fn described_methods(item: &PathItem) -> impl Iterator<Item = Method> {
    let all = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ];
    let described = all.into_iter().filter(|(_, operation)| operation.is_some());
    described.map(|(method, _)| method)
}

/// A URI without the prefix of all paths; `None` if it does not have it.
fn without_prefix(prefix: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(prefix)?;
    let rest: PathAndQuery = match rest.as_bytes().first() {
        Some(b'/') => rest.parse().ok()?,
        Some(b'?') | None => format!("/{rest}").parse().ok()?,
        Some(_) => return None,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(rest);
    Uri::from_parts(parts).ok()
}

/// The URI without a trailing slash; `None` if it has none.
fn without_trailing_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_suffix('/')?;
    if path.is_empty() {
        return None;
    }
    let rest = match uri.query() {
        Some(query) => format!("{path}?{query}").parse().ok()?,
        None => path.parse().ok()?,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(rest);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests;

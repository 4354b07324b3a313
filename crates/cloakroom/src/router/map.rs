//! Which route a request meets, and what stands in front of it.

use std::collections::BTreeMap;

use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Uri};
use utoipa::openapi::{OpenApi, PathItem};

use crate::access::gate::Source;
use crate::api::Route;

/// What stands in front of a handler.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entrance {
    /// Anyone may ask.
    Open,
    /// A key is needed, which is looked up there.
    Keyed(Source),
}

/// What a request meets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Met<'a> {
    Handler(&'a Route, Entrance),
    /// A path that answers to these methods only.
    Path(&'a Route, &'a HeaderValue),
    Nothing,
}

impl<'a> Met<'a> {
    pub(super) fn route(self) -> Option<&'a Route> {
        match self {
            Self::Handler(route, _) | Self::Path(route, _) => Some(route),
            Self::Nothing => None,
        }
    }
}

/// Every path of the API. It is asked before anything is done for a request, and knows all handlers: they
/// describe themselves.
pub(super) struct Map {
    prefix: String,
    places: matchit::Router<Place>,
}

/// A path, and its methods.
struct Place {
    route: Route,
    entrances: Vec<(Method, Entrance)>,
    /// The same methods, as they are told.
    allowed: HeaderValue,
}

impl Map {
    /// The paths of these descriptions, all of them under the same prefix.
    pub(super) fn new(
        prefix: &str,
        parts: &[(Entrance, OpenApi)],
    ) -> Result<Self, matchit::InsertError> {
        let mut all: BTreeMap<&str, Vec<(Method, Entrance)>> = BTreeMap::new();
        for (entrance, part) in parts {
            for (path, item) in &part.paths.paths {
                let entrances = methods(item).map(|method| (method, *entrance));
                all.entry(path).or_default().extend(entrances);
            }
        }
        let mut places = matchit::Router::new();
        for (path, entrances) in all {
            let place = Place {
                route: Route(path.into()),
                allowed: allowed(&entrances),
                entrances,
            };
            places.insert(path, place)?;
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            places,
        })
    }

    /// Finds what a request meets. From then on its path is that of the API, without the prefix.
    pub(super) fn find<B>(&self, request: &mut Request<B>) -> Met<'_> {
        if !self.prefix.is_empty() {
            match strip(&self.prefix, request.uri()) {
                Some(inside) => *request.uri_mut() = inside,
                None => return Met::Nothing,
            }
        }
        let Ok(found) = self.places.at(request.uri().path()) else {
            return Met::Nothing;
        };
        // Whoever answers GET answers HEAD as well.
        let method = match *request.method() {
            Method::HEAD => &Method::GET,
            ref method => method,
        };
        let place = found.value;
        let mut entrances = place.entrances.iter();
        match entrances.find(|(known, _)| known == method) {
            Some((_, entrance)) => Met::Handler(&place.route, *entrance),
            None => Met::Path(&place.route, &place.allowed),
        }
    }
}

fn allowed(entrances: &[(Method, Entrance)]) -> HeaderValue {
    let names = entrances.iter().map(|(method, _)| match *method {
        Method::GET => "GET,HEAD",
        ref method => method.as_str(),
    });
    let names: Vec<&str> = names.collect();
    // Names of methods are plain text.
    HeaderValue::try_from(names.join(",")).unwrap_or(HeaderValue::from_static(""))
}

fn methods(item: &PathItem) -> impl Iterator<Item = Method> {
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

/// An address without the path that everything is under; nothing for one that is not.
fn strip(prefix: &str, uri: &Uri) -> Option<Uri> {
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

#[cfg(test)]
mod tests {
    use utoipa::openapi::path::{HttpMethod, OperationBuilder};
    use utoipa::openapi::{OpenApiBuilder, PathsBuilder};

    use super::*;

    const KEYED: Entrance = Entrance::Keyed(Source::Primary);

    fn described(paths: &[(&str, &[HttpMethod])]) -> OpenApi {
        let mut all = PathsBuilder::new();
        for (path, methods) in paths {
            for method in *methods {
                let operation = OperationBuilder::new().build();
                all = all.path(*path, PathItem::new(method.clone(), operation));
            }
        }
        OpenApiBuilder::new().paths(all).build()
    }

    fn map(prefix: &str) -> Map {
        let open = described(&[("/ping", &[HttpMethod::Get]), ("/both", &[HttpMethod::Get])]);
        let keyed = described(&[
            ("/things/{id}", &[HttpMethod::Get, HttpMethod::Patch]),
            ("/both", &[HttpMethod::Post]),
        ]);
        Map::new(prefix, &[(Entrance::Open, open), (KEYED, keyed)]).unwrap()
    }

    /// The route, how it is entered or what else it answers to, and the path afterwards.
    fn found(map: &Map, method: Method, uri: &str) -> (String, String, String) {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().unwrap();
        let (route, how) = match map.find(&mut request) {
            Met::Handler(route, entrance) => (&*route.0, format!("{entrance:?}")),
            Met::Path(route, allowed) => (&*route.0, allowed.to_str().unwrap().to_owned()),
            Met::Nothing => ("", String::new()),
        };
        (route.to_owned(), how, request.uri().to_string())
    }

    #[test]
    fn a_method_of_a_path_has_an_entrance_of_its_own() {
        let map = map("");
        let cases = [
            (Method::GET, "/ping", "/ping", "Open"),
            (Method::GET, "/both", "/both", "Open"),
            (Method::POST, "/both", "/both", "Keyed(Primary)"),
            (
                Method::PATCH,
                "/things/7?a=b",
                "/things/{id}",
                "Keyed(Primary)",
            ),
            (Method::HEAD, "/things/7", "/things/{id}", "Keyed(Primary)"),
            (Method::PUT, "/things/7", "/things/{id}", "GET,HEAD,PATCH"),
            (Method::OPTIONS, "/both", "/both", "GET,HEAD,POST"),
            (Method::GET, "/things", "", ""),
            (Method::GET, "/things/7/8", "", ""),
        ];
        for (method, uri, route, how) in cases {
            let case = format!("{method} {uri}");
            let (met, found, _) = found(&map, method, uri);
            assert_eq!((met.as_str(), found.as_str()), (route, how), "{case}");
        }
    }

    #[test]
    fn a_prefix_is_needed_and_taken_off() {
        let map = map("/v1");
        let met = |uri| found(&map, Method::GET, uri);

        let (route, how, inside) = met("/v1/things/7?a=b");
        assert_eq!(
            (route.as_str(), how.as_str()),
            ("/things/{id}", "Keyed(Primary)")
        );
        assert_eq!(inside, "/things/7?a=b");
        assert_eq!(met("http://h/v1/ping").2, "http://h/ping");
        for outside in [
            "/ping",
            "/v1",
            "/v1?a=b",
            "/v1x/ping",
            "/v1ping",
            "/v/ping",
            "/v1/v1/ping",
        ] {
            assert_eq!(met(outside).0, "", "{outside}");
        }
    }
}

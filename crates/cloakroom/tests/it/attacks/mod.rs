//! Input that was made to hurt: bodies that are broken in every way, and requests that hide a second one.

mod bodies;
mod breakage;
mod corpus;
mod place;
mod smuggling;
mod target;
mod text;
mod timing;

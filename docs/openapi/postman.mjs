// The Postman collection, converted from openapi.json.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import converter from "openapi-to-postmanv2";

import { docs } from "../.vitepress/sources.mjs";

const options = { folderStrategy: "Tags", requestParametersResolution: "Example", exampleParametersResolution: "Example" };

/** The collection with the variables `baseUrl` and `apiKey`. */
export async function collection() {
  const api = JSON.parse(readFileSync(join(docs, "api/openapi.json"), "utf8"));
  // The address of the document itself means nothing to a client.
  api.servers = [{ url: "http://127.0.0.1:8080" }];
  const convert = promisify(converter.convert.bind(converter));
  const { result, reason, output } = await convert({ type: "json", data: api }, options);
  if (!result) throw new Error(reason);
  return output[0].data;
}

/** The requests of a collection, those of its folders included. */
export const requestsOf = (item) => (item.item ? item.item.flatMap(requestsOf) : [item]);

export async function writeCollection(file) {
  writeFileSync(file, JSON.stringify(await collection(), null, 1));
}

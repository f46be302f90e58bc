// SPDX-License-Identifier: Apache-2.0
// The program of this machine, and the environment that it runs in.
//
// Contract: FORETOKEN_PROGRAM names the program and FORETOKEN_MODELS the folder of the bundled models, where they are set. Else the program
// is in the package @foretoken/PLATFORM of this package's version, and the models are in this package. Nothing is started here.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ForetokenError } from './errors.js';

const require = createRequire(import.meta.url);
const folder = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const kOwnBuild = 'build foretoken from its sources and name the program in FORETOKEN_PROGRAM';

function read(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

// True if version a, as in "2.36", comes before b.
export function isBefore(a, b) {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  const place = right.findIndex((number, index) => number !== (left[index] ?? 0));
  return place !== -1 && (left[place] ?? 0) < right[place];
}

// The version of the C library glibc that runs this process; undefined with another one.
function glibcVersion() {
  const before = process.report.excludeNetwork;
  process.report.excludeNetwork = true; // names of connections would be looked up
  try {
    return process.report.getReport().header.glibcVersionRuntime;
  } finally {
    process.report.excludeNetwork = before;
  }
}

// Throws where this process's C library cannot run the program of `platform`. needs: {glibc, interpreter}.
export function checkLibc(platform, needs, version, exists = existsSync) {
  const way = 'use a system with glibc (Debian, Ubuntu, Fedora and their images)';
  if (!exists(needs.interpreter)) {
    const why = `the program needs glibc, and ${needs.interpreter} is not here`;
    throw new ForetokenError('unsupported_platform', `platform ${platform}: ${why}; ${way}, or ${kOwnBuild}`);
  }
  if (version !== undefined && isBefore(version, needs.glibc)) {
    const why = `the program needs glibc ${needs.glibc}, and this is ${version}`;
    throw new ForetokenError('unsupported_platform', `platform ${platform}: ${why}; use a newer system, or ${kOwnBuild}`);
  }
}

function installed(name, version) {
  let file;
  try {
    file = require.resolve(`${name}/package.json`);
  } catch (cause) {
    const way = `run \`npm install ${name}@${version}\`, without --omit=optional`;
    throw new ForetokenError('not_found', `package ${name}: it has the program for this platform and is not installed; ${way}, or ${kOwnBuild}`, { cause });
  }
  const found = read(file);
  if (found.version !== version) {
    throw new ForetokenError('not_found', `package ${name}: its version is ${found.version}, not ${version}; run \`npm install ${name}@${version}\``);
  }
  return { found, place: path.dirname(file) };
}

// The path of the program. Errors: unsupported_platform, not_found.
export function program(platform = `${process.platform}-${process.arch}`) {
  if (process.env.FORETOKEN_PROGRAM) return process.env.FORETOKEN_PROGRAM;
  const own = read(path.join(folder, 'package.json'));
  const name = `@foretoken/${platform}`;
  const packages = own.optionalDependencies ?? {};
  if (!(name in packages)) {
    const known = Object.keys(packages).map((one) => one.replace('@foretoken/', '')).join(', ') || 'none';
    throw new ForetokenError('unsupported_platform', `platform ${platform}: there is no prebuilt program for it (there are: ${known}); ${kOwnBuild}`);
  }
  const { found, place } = installed(name, packages[name]);
  checkLibc(platform, found.foretoken, glibcVersion());
  return path.join(place, 'bin', 'foretoken');
}

// Why the program at `place` could not be started, and what to do.
export function cannotStart(place, why) {
  return `program ${place}: ${why.message}; install the package again, or name another program in FORETOKEN_PROGRAM`;
}

// The environment of the program.
export function environment() {
  const models = path.join(folder, 'models');
  if (process.env.FORETOKEN_MODELS || !existsSync(models)) return { ...process.env };
  return { ...process.env, FORETOKEN_MODELS: models };
}

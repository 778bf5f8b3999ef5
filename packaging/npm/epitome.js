#!/usr/bin/env node
// Runs the program that the package for this platform holds, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");

const holder = `@epitome-cli/${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "epitome.exe" : "epitome";

let program;
try {
  program = require.resolve(`${holder}/bin/${file}`);
} catch {
  console.error(`epitome: the package ${holder} is not installed.`);
  console.error("Either there is no program for this platform, or npm was told to leave optional");
  console.error("dependencies out (--omit=optional). Building it from source takes `cargo install`.");
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to both: the program decides what it means.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`epitome: ${program} cannot be run: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal !== null) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  process.exit(code ?? 1);
});

// SPDX-License-Identifier: Apache-2.0
// foretoken/bus_errors.h: what happens when a model file is cut short while it is in use.
//
// Model files are mapped into memory. When a program reads a page of a mapping that the file no
// longer has, the signal SIGBUS ends the program, unless the program handles it. Therefore
// foretoken sets a handler for SIGBUS when it maps its first file, once in the life of the process.
// For addresses in its own mappings the handler puts a page of zeros there and records that the
// file is lost. The engine then refuses and ends requests with an error that names the file, and
// commits nothing that was computed from such pages. All other SIGBUS go to the handler that was
// there before, or to the system's default.
//
// A program that sets its own SIGBUS handler later should do the same: keep the handler that was
// there, and call it for addresses that are not its own.
#pragma once

namespace foretoken {

// Whether files that are mapped from now on have this protection (by default they do). A program
// that wants no handler passes `false` before it opens its first model. Any thread.
void CatchBusErrors(bool on) noexcept;

}  // namespace foretoken

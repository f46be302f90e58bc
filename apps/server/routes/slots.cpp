// SPDX-License-Identifier: Apache-2.0
// server/routes/slots.cpp: llama.cpp's named slots: the cache of a text goes to a file, and comes back.
#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "server/api/llama_cpp_replies.h"
#include "server/api/llama_cpp_schema.h"
#include "server/net/query.h"
#include "server/router.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"
#include "settings/option_flags.h"

namespace foretoken::server {
namespace {

enum class SlotWork { kSave, kRestore, kErase };

HttpResponse SlotRefusal(const ApiError& error, LogLine& line) {
  line.Add("error", NameOf(error));
  HttpResponse response = ErrorResponse(error);
  response.body = LlamaCppErrorJson(error);
  return response;
}

ApiError NoSlotFolder() {
  return {.status = 501,
          .message = "slots: this server keeps no files of them; start it with --slot-save-path",
          .code = "not_implemented"};
}

ApiError SlotInWork() {
  return {.status = 503,
          .message = "slots: another one is saved or restored; try again",
          .type = "server_error",
          .code = "slot_in_work",
          .retry_after_s = 1};
}

// Files by their names: the folder is not the client's business.
ApiError OfSlot(const Service& service, const Error& error) {
  if (error.code == ErrorCode::kStopped) return ShuttingDown();
  std::string message = settings::InFlags(error.message);
  const std::string folder = service.slot_folder + "/";
  for (std::size_t at; (at = message.find(folder)) != std::string::npos;)
    message.erase(at, folder.size());
  if (error.code == ErrorCode::kIo || error.code == ErrorCode::kNoMemory)
    return {.status = 500,
            .message = std::move(message),
            .type = "server_error",
            .code = error.code == ErrorCode::kIo ? "slot_file" : "out_of_memory"};
  return {.message = std::move(message), .code = "slot"};
}

Parsed<SlotWork> WorkOf(const HttpRequest& request) {
  const std::string action = QueryField(request.query, "action").value_or("");
  if (action == "save") return SlotWork::kSave;
  if (action == "restore") return SlotWork::kRestore;
  if (action == "erase") return SlotWork::kErase;
  return Refuse(BadField(
      "action", fmt::format("'{}' is not known; use save, restore or erase", Shown(action, 32))));
}

Parsed<int> SlotOf(const Service& service, const HttpRequest& request) {
  const std::string name = NameInPath(request);
  const int n_slots = service.engine.summary().max_sequences;
  int slot = -1;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data(), end, slot);
  if (error == std::errc() && last == end && slot >= 0 && slot < n_slots) return slot;
  return Refuse(BadField("slot", fmt::format("there is no '{}'; give a number from 0 to {}",
                                             Shown(name, 32), n_slots - 1)));
}

// One at a time, so that the others' threads read requests.
class SlotTurn {
 public:
  explicit SlotTurn(std::atomic<bool>& taken) : taken_(taken), mine_(!taken.exchange(true)) {}
  ~SlotTurn() {
    if (mine_) taken_ = false;
  }
  SlotTurn(const SlotTurn&) = delete;
  SlotTurn& operator=(const SlotTurn&) = delete;

  bool mine() const { return mine_; }

 private:
  std::atomic<bool>& taken_;
  const bool mine_;
};

HttpResponse Slot(Service& service, const HttpRequest& request, LogLine& line) {
  if (service.slot_folder.empty()) return SlotRefusal(NoSlotFolder(), line);
  const auto slot = SlotOf(service, request);
  if (!slot) return SlotRefusal(slot.error(), line);
  const auto work = WorkOf(request);
  if (!work) return SlotRefusal(work.error(), line);
  const auto call = ParseLlamaCppSlot(request.body, *work == SlotWork::kErase);
  if (!call) return SlotRefusal(call.error(), line);
  const SlotTurn turn(service.slot_in_work);
  if (!turn.mine()) return SlotRefusal(SlotInWork(), line);

  const std::string salt = SaltOf(service, request, call->cache_salt);
  Result<SlotCounts> counts = SlotCounts();
  const auto begin = std::chrono::steady_clock::now();
  const Status ran = service.requests.Run([&](Engine& engine) {
    if (*work == SlotWork::kSave) {
      counts = engine.SaveSlot(*slot, call->filename, salt);
    } else if (*work == SlotWork::kRestore) {
      counts = engine.RestoreSlot(*slot, call->filename, salt);
    } else {
      counts = engine.EraseSlot(*slot, salt).map([](int n) { return SlotCounts{.tokens = n}; });
    }
  });
  line.Add("action", QueryField(request.query, "action").value_or(""));
  if (!ran) return SlotRefusal(OfSlot(service, ran.error()), line);
  if (!counts) return SlotRefusal(OfSlot(service, counts.error()), line);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  line.Add("tokens", counts->tokens).Add("bytes", counts->bytes).AddMs("work_ms", time.count());
  const LlamaCppSlotAction action{
      .slot = *slot, .filename = call->filename, .counts = *counts, .ms = time.count()};
  return {.body = *work == SlotWork::kSave      ? LlamaCppSavedJson(action)
                  : *work == SlotWork::kRestore ? LlamaCppRestoredJson(action)
                                                : LlamaCppErasedJson(action)};
}

}  // namespace

extern const Route kSlotRoute = {
    .method = "POST",
    .path = "/slots/*",
    .about =
        "llama.cpp's, with `?action=save`, `restore` or `erase`: what is kept of the text that "
        "ended "
        "last in a slot goes to the file `filename`, comes back from it, or is given up, below",
    .handle = Slot,
    .refusal = LlamaCppErrorJson,
    .reads = [](const ModelLimits&) { return MissingField(ParseLlamaCppSlot("{}", true)); },
    .reply = "LlamaCppSlotAction"};

}  // namespace foretoken::server

# nlohmann/json is headers alone, which the toolchain file's flags find.
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)

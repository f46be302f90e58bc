# cmake -D FOLDER=... -D SCRIPTS=a.js,b.js -D OUTPUT=page.cpp -P inline.cmake
# Puts style.css and the scripts into index.html, and that into a .cpp file. The scripts are modules, so that tests can import them;
# here they become one, which needs neither their import lines (one line each) nor their exports.
file(READ ${FOLDER}/index.html page)
file(READ ${FOLDER}/style.css style)
set(script "")
string(REPLACE "," ";" names "${SCRIPTS}")
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name} text)
  string(REGEX REPLACE "\nimport [^\n]*" "" text "\n${text}")
  string(REPLACE "\nexport " "\n" text "${text}")
  string(APPEND script "${text}")
endforeach()
string(REPLACE "<!-- style.css -->" "<style>\n${style}</style>" page "${page}")
string(REPLACE "<!-- scripts -->" "<script type=\"module\">${script}</script>" page "${page}")

string(REGEX MATCHALL "</script>|<!-- [^\n]*" ends "${page}")
if(NOT ends STREQUAL "</script>")
  message(FATAL_ERROR "The page at \"/\": a mark in index.html was not filled, or a script holds one of its own: ${ends}")
endif()
string(FIND "${page}" ")PAGE\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "The page at \"/\": it holds the end mark of its own C++ literal; write it otherwise")
endif()
file(WRITE ${OUTPUT} "// Made from apps/server/page by inline.cmake; edit there.
#include \"server/page/page.h\"

namespace foretoken::server {

std::string_view PageOf(std::string_view path) {
  static constexpr std::string_view kPage = R\"PAGE(${page})PAGE\";
  return path == \"/\" || path == \"/index.html\" ? kPage : std::string_view{};
}

}  // namespace foretoken::server
")

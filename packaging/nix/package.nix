# SPDX-License-Identifier: Apache-2.0
# Builds the tree in which it lies (docs/install.md).
{ lib, stdenv, cmake, ninja, pkg-config, boost, cli11, fmt, libedit, pcre2, prometheus-cpp, rapidjson, tl-expected, utf8proc, xxHash, yaml-cpp
, withServer ? true }:

stdenv.mkDerivation {
  pname = "foretoken";
  version = "0.1.0";
  src = lib.cleanSource ../..;

  nativeBuildInputs = [ cmake ninja pkg-config ];
  buildInputs = [ cli11 fmt libedit pcre2 rapidjson tl-expected utf8proc xxHash yaml-cpp ]
    ++ lib.optionals withServer [ boost prometheus-cpp ];

  cmakeFlags = [
    "-DFORETOKEN_SERVER=${if withServer then "ON" else "OFF"}"
    "-DFORETOKEN_UNITY=ON"
    "-DFORETOKEN_TESTS=OFF"
    "-DFORETOKEN_EXAMPLES=OFF"
    "-DFORETOKEN_TRAIN=OFF"
    "-DFORETOKEN_MPI=OFF"
  ];

  meta = {
    description = "Language models with speculative decoding, on CPUs";
    license = lib.licenses.asl20;
    mainProgram = "foretoken";
    platforms = lib.platforms.linux;
  };
}

# SPDX-License-Identifier: Apache-2.0
# A formula of Homebrew on Linux (docs/install.md). HOMEBREW_FORETOKEN_SOURCES names a clone of the sources.
class Foretoken < Formula
  desc "Language models with speculative decoding, on CPUs"
  url "file://#{ENV.fetch("HOMEBREW_FORETOKEN_SOURCES", "")}", using: :git, branch: "main"
  version "0.1.0"
  license "Apache-2.0"

  depends_on "boost" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "rapidjson" => :build
  depends_on "tl-expected" => :build
  depends_on "xxhash" => :build
  depends_on "fmt"
  depends_on "libedit"
  depends_on :linux
  depends_on "pcre2"
  depends_on "prometheus-cpp"
  depends_on "utf8proc"
  depends_on "yaml-cpp"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DFORETOKEN_UNITY=ON", "-DFORETOKEN_TESTS=OFF", "-DFORETOKEN_EXAMPLES=OFF",
           "-DFORETOKEN_TRAIN=OFF", "-DFORETOKEN_MPI=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    system bin/"foretoken", "generate", "-p", "Once upon a time", "-n", "8"
  end
end

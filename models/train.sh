#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the bundled models from text: vocabulary, target, what the target writes, draft, heads.
# usage: models/train.sh CORPUS WORK
#   CORPUS: folder with children_books.txt.xz, tinystories_train.txt.xz and tinystories_valid.txt.xz (see models/README.md)
#   WORK:   folder for everything that is made; a run that was stopped continues when the command is given again
# Environment: TRAIN (the program; build/release/foretoken-train), MINUTES_TARGET (75), MINUTES_DRAFT, MINUTES_EAGLE, MINUTES_MTP, MINUTES_HYBRID (12, 30, 8, 42)
set -Eeuo pipefail
corpus=$1 work=$2
train=${TRAIN:-$(dirname "$0")/../build/release/foretoken-train}
license="Apache-2.0"
mkdir -p "$work/text"

text=$work/text
if [[ ! -f $text/tinystories_valid.txt ]]; then
  xz -dc "$corpus/tinystories_train.txt.xz" > "$text/tinystories_train.txt"
  # Two books are kept out of training: Raggedy Ann Stories (the 51st) and The Velveteen Rabbit (the 72nd).
  xz -dc "$corpus/children_books.txt.xz" | awk -v held="$text/held_out.txt" -v rest="$text/children.txt" '
    /^<\|endoftext\|>$/ { book++; print > (out ? out : rest); next }
    { out = (book == 50 || book == 71) ? held : rest; print > out }'
  xz -dc "$corpus/tinystories_valid.txt.xz" > "$text/tinystories_valid.txt"
fi
books=$text/children.txt tales=$text/tinystories_train.txt
held_out=(--held-out "$text/held_out.txt" --held-out "$text/tinystories_valid.txt")

[[ -f $work/vocabulary.gguf ]] ||
  "$train" tokenizer --out "$work/vocabulary.gguf" --size 4096 --text "$books" --text "$tales"

target=$work/tales-9m-q8_0.gguf
[[ -f $target ]] ||
  "$train" model --vocabulary "$work/vocabulary.gguf" --text "$books:0.5" --text "$tales:0.5" "${held_out[@]}" \
    --layers 5 --width 384 --heads 6 --kv-heads 2 --ff 1024 --context 512 \
    --batch 8 --minutes "${MINUTES_TARGET:-75}" --name "foretoken tales 9M" --license "$license" \
    --log "$work/target.csv" --out "$target"
"$(dirname "$0")/set_chat_template.py" "$target" "$(dirname "$0")/story.jinja"

own=$work/text/own.txt
[[ -f $own ]] ||
  "$train" sample --model "$target" --text "$tales" --text "$books" --tokens 700000 --temp 0.8 --out "$own"
mix=(--text "$own:0.6" --text "$books:0.2" --text "$tales:0.2")

draft=$work/tales-1m-draft-q8_0.gguf
[[ -f $draft ]] ||
  "$train" distill --target "$target" "${mix[@]}" "${held_out[@]}" --layers 2 --width 128 --heads 2 --kv-heads 1 --ff 384 --batch 4 \
    --minutes "${MINUTES_DRAFT:-12}" --name "foretoken tales draft 1M" --license "$license" --log "$work/draft.csv" --out "$draft"

eagle=$work/tales-9m-eagle-q8_0.gguf
[[ -f $eagle ]] ||
  "$train" eagle --target "$target" --text "$own:0.7" --text "$books:0.15" --text "$tales:0.15" "${held_out[@]}" --layers-read 1,2,4 \
    --draft-vocabulary 2048 --batch 3 --unroll 4 --minutes "${MINUTES_EAGLE:-30}" --name "foretoken tales EAGLE-3 head" --license "$license" --log "$work/eagle.csv" --out "$eagle"

mtp=$work/tales-9m-mtp-q8_0.gguf
[[ -f $mtp ]] ||
  "$train" mtp --target "$target" "${mix[@]}" "${held_out[@]}" --batch 3 --unroll 3 \
    --minutes "${MINUTES_MTP:-8}" --name "foretoken tales MTP head" --license "$license" --log "$work/mtp.csv" --out "$mtp"

hybrid=$work/tales-3m-hybrid-q8_0.gguf
[[ -f $hybrid ]] ||
  "$train" distill --target "$target" --text "$books:0.5" --text "$tales:0.5" "${held_out[@]}" --layers 4 --width 192 --heads 6 --kv-heads 2 --ff 512 \
    --convolutions 0,2,3 --batch 4 --minutes "${MINUTES_HYBRID:-42}" --name "foretoken tales hybrid 3M" --license "$license" --log "$work/hybrid.csv" --out "$hybrid"
"$(dirname "$0")/set_chat_template.py" "$hybrid" "$(dirname "$0")/story.jinja"
ls -l "$work"/*.gguf

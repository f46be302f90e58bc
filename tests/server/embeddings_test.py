#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeddings and ranks of documents: shapes and numbers in the forms of OpenAI, llama.cpp, Ollama and Jina; that they stay the same to the bit beside other
work; what is refused."""
import base64
import json
import math
import struct

from gguf_file import with_rerank_head
from server_case import ONE_THREAD, TARGET, ServerCase, main, new_folder, run_program
from server_testing import together

NAME = "tales-9m-q8_0"
EMBEDDINGS, RERANK = "/v1/embeddings", "/v1/rerank"
TEXTS = ["Once upon a time there was a dog.", "The sun was warm.", "A dog ran away.", "The sun was warm."]
POOLINGS = ("mean", "cls", "last")
LONG = ("/v1/completions", {"prompt": "a", "max_tokens": 400, "ignore_eos": True})


def product(a, b):
    return sum(x * y for x, y in zip(a, b))


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Embeddings(ServerCase):
    FLAGS, SHARED = (*ONE_THREAD, "-q"), ("--parallel", "2", "--max-queue", "8", "--max-requests-per-address", "100")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.size = cls.server.get("/v1/models")["data"][0]["meta"].get("embedding_size") or len(cls.embed(cls, "a"))

    def embed(self, text, **fields):
        return self.server.post(EMBEDDINGS, {"input": text, **fields})["data"][0]["embedding"]

    def rows(self, texts, **fields):
        return [entry["embedding"] for entry in self.server.post(EMBEDDINGS, {"input": texts, **fields})["data"]]

    def test_shapes(self):
        reply = self.server.post(EMBEDDINGS, {"model": NAME, "input": TEXTS, "user": "me"})
        self.assertEqual((reply["object"], reply["model"]), ("list", NAME))
        self.assertEqual([(entry["object"], entry["index"]) for entry in reply["data"]], [("embedding", i) for i in range(4)])
        rows = [entry["embedding"] for entry in reply["data"]]
        self.assertEqual({len(row) for row in rows}, {self.size})
        for row in rows:
            self.assertAlmostEqual(product(row, row), 1, places=5)
        self.assertEqual(rows[1], rows[3])
        self.assertNotEqual(rows[0], rows[1])
        tokens = [self.server.post("/tokenize", {"content": text, "add_special": True})["tokens"] for text in TEXTS]
        n = sum(map(len, tokens))
        self.assertEqual(reply["usage"], {"prompt_tokens": n, "total_tokens": n})
        for inputs in (tokens, [TEXTS[0], tokens[1], TEXTS[2], tokens[3]]):
            self.assertEqual(self.server.post(EMBEDDINGS, {"input": inputs})["data"], reply["data"])
        for text, ids, row in zip(TEXTS, tokens, rows):
            self.assertEqual(self.embed(text), row)
            self.assertEqual(self.embed(ids), row)

    def test_base64(self):
        for pooling in POOLINGS:
            whole = self.embed(TEXTS[0], pooling=pooling)
            data = self.embed(TEXTS[0], pooling=pooling, encoding_format="base64")
            self.assertEqual(list(struct.unpack(f"<{self.size}f", base64.b64decode(data, validate=True))), [single(x) for x in whole])
        for dimensions in (1, 2, 3):  # with and without padding
            data = self.embed(TEXTS[0], dimensions=dimensions, encoding_format="base64")
            self.assertEqual(len(base64.b64decode(data, validate=True)), 4 * dimensions)

    def test_poolings(self):
        tokens = self.server.post("/tokenize", {"content": TEXTS[0], "add_special": True})["tokens"]
        rows = self.server.post("/embedding", {"content": TEXTS[0], "pooling": "none"})[0]["embedding"]
        self.assertEqual([len(row) for row in rows], [self.size] * len(tokens))
        for pooling, want in (("cls", rows[0]), ("last", rows[-1]), ("mean", [sum(column) / len(rows) for column in zip(*rows)])):
            found = self.embed(TEXTS[0], pooling=pooling, embd_normalize=-1)
            for x, y in zip(found, want):
                self.assertAlmostEqual(x, y, places=5)
        self.assertEqual(self.embed(TEXTS[0]), self.embed(TEXTS[0], pooling="last"))

    def test_lengths(self):
        raw = self.embed(TEXTS[0], embd_normalize=-1)
        for p, norm in ((0, max(map(abs, raw)) / 32760), (1, sum(map(abs, raw))), (2, math.sqrt(product(raw, raw))), (3, sum(abs(x) ** 3 for x in raw) ** (1 / 3))):
            for x, y in zip(self.embed(TEXTS[0], embd_normalize=p), raw):
                self.assertAlmostEqual(x, y / norm, delta=1e-5 * max(1, abs(y / norm)))
        whole, cut = self.embed(TEXTS[0]), self.embed(TEXTS[0], dimensions=8)
        self.assertEqual(len(cut), 8)
        length = math.sqrt(product(whole[:8], whole[:8]))
        for x, y in zip(cut, whole):
            self.assertAlmostEqual(x, y / length, places=5)

    def test_forms_of_llama_cpp(self):
        rows = self.rows(TEXTS)
        want = [{"index": i, "embedding": [row]} for i, row in enumerate(rows)]
        for path, field in (("/embedding", "content"), ("/embedding", "input"), ("/embeddings", "input"), ("/embeddings", "content"), (EMBEDDINGS, "content")):
            self.assertEqual(self.server.post(path, {field: TEXTS}), want)
        self.assertEqual(self.server.post("/embedding", {"content": TEXTS[0]}), want[:1])

    def test_forms_of_ollama(self):
        rows = self.rows(TEXTS)
        reply = self.server.post("/api/embed", {"model": NAME + ":latest", "input": TEXTS, "options": {"num_ctx": 64}, "keep_alive": "5m"})
        self.assertEqual((reply["model"], reply["embeddings"], reply["load_duration"]), (NAME, rows, 0))
        self.assertGreater(reply["total_duration"], 0)
        self.assertGreater(reply["prompt_eval_count"], 4)
        self.assertEqual(self.server.post("/api/embed", {"model": NAME, "input": TEXTS[0]})["embeddings"], rows[:1])
        self.assertEqual(self.server.post("/api/embed", {"model": NAME})["embeddings"], [])
        self.assertEqual(self.server.post("/api/embeddings", {"model": NAME, "prompt": TEXTS[0]}), {"embedding": self.embed(TEXTS[0], embd_normalize=-1)})
        self.assertEqual(self.server.post("/api/embeddings", {"model": NAME}), {"embedding": []})
        long = "a dog " * 2000
        self.assertEqual(self.server.post("/api/embed", {"model": NAME, "input": long})["prompt_eval_count"], 512)
        self.assertRegex(self.server.error("/api/embed", {"model": NAME, "input": ["a", long], "truncate": False}), r"^input\[1\]: \d+ tokens do not fit a context of 512")

    def test_ranks(self):
        query = "The sun was very warm."
        rows = self.rows([query, *TEXTS], pooling="mean")
        scores = [product(rows[0], row) for row in rows[1:]]
        order = sorted(range(4), key=lambda i: -scores[i])
        body = {"model": NAME, "query": query, "documents": TEXTS, "pooling": "mean"}
        for path in (RERANK, "/rerank", "/v1/reranking", "/reranking"):
            reply = self.server.post(path, body)
            self.assertEqual([result["index"] for result in reply["results"]], order)
            for result in reply["results"]:
                self.assertAlmostEqual(result["relevance_score"], scores[result["index"]], places=5)
                self.assertNotIn("document", result)
        self.assertEqual((reply["object"], reply["model"], len(reply["notices"])), ("list", NAME, 1))
        self.assertGreater(reply["usage"]["total_tokens"], 8)
        documents = [TEXTS[0], {"text": TEXTS[1]}, *TEXTS[2:]]
        reply = self.server.post(RERANK, {**body, "documents": documents, "top_n": 2, "return_documents": True})
        self.assertEqual([(result["index"], result["document"]["text"]) for result in reply["results"]], [(i, TEXTS[i]) for i in order[:2]])
        texts = self.server.post(RERANK, {"query": query, "texts": TEXTS, "return_text": True, "pooling": "mean"})
        self.assertEqual([(result["index"], result["text"]) for result in texts], [(i, TEXTS[i]) for i in order])

    def test_errors(self):
        long = "a dog " * 2000
        cases = (
            ({}, "input"), ({"input": None}, "input"), ({"input": []}, "input"), ({"input": 3}, "input"), ({"input": {}}, "input"),
            ({"input": ["a", 3]}, "input[1]"), ({"input": ["a", []]}, "input[1]"), ({"input": [[1], [2, -1]]}, "input[1]"),
            ({"input": [1, 10 ** 9]}, "input"), ({"input": [1, "a"]}, "input"), ({"input": ["a", ["b"]]}, "input[1]"),
            ({"input": ["a"] * 2049}, "input"), ({"input": ["a", long]}, "input[1]"), ({"input": long}, "input"), ({"input": [17] * 513}, "input"),
            ({"input": "", "add_special_tokens": False}, "input"), ({"input": ["a", ""], "add_special_tokens": False}, "input[1]"),
            ({"input": "a", "content": "a"}, "content"), ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
            ({"input": "a", "encoding_format": 1}, "encoding_format"), ({"input": "a", "dimensions": 0}, "dimensions"),
            ({"input": "a", "dimensions": self.size + 1}, "dimensions"), ({"input": "a", "dimensions": "8"}, "dimensions"),
            ({"input": "a", "pooling": "max"}, "pooling"), ({"input": "a", "pooling": "none"}, "pooling"), ({"input": "a", "pooling": "rank"}, "pooling"),
            ({"input": "a", "embd_normalize": -2}, "embd_normalize"), ({"input": "a", "embd_normalize": 1.5}, "embd_normalize"),
            ({"input": "a", "inputs": "a"}, "inputs"), ({"input": "a", "model": "other"}, "model"))
        for body, field in cases:
            error = self.server.error(EMBEDDINGS, body, 404 if field == "model" else 400)
            self.assertEqual(error["param"], field, error)
            self.assertTrue(error["message"].startswith(field), error)
        self.assertEqual(self.server.error(EMBEDDINGS, {"input": ["a", long]})["code"], "context_length_exceeded")
        for body, field in (({"documents": ["a"]}, "query"), ({"query": "a"}, "documents"), ({"query": "a", "documents": []}, "documents"),
                            ({"query": 3, "documents": ["a"]}, "query"), ({"query": "a", "documents": "a"}, "documents"),
                            ({"query": "a", "documents": ["a", 3]}, "documents[1]"), ({"query": "a", "documents": [{"image": "a"}]}, "documents[0]"),
                            ({"query": "a", "documents": ["a"] * 2048}, "documents"), ({"query": "a", "documents": ["a"], "texts": ["a"]}, "texts"),
                            ({"query": "a", "documents": ["a", long]}, "documents[1]"), ({"query": long, "documents": ["a"]}, "query"),
                            ({"query": "a", "documents": ["a"], "top_n": 0}, "top_n"), ({"query": "a", "documents": ["a"], "pooling": "none"}, "pooling")):
            self.assertEqual(self.server.error(RERANK, body)["param"], field, body)
        self.assertEqual(self.server.error("/embedding", {"content": []})["code"], 400)
        self.server.error("/embedding", {"content": "a", "pooling": "none", "dimensions": 2})
        self.server.error("/api/embed", {"model": "other", "input": "a"}, 404)
        self.server.error("/api/embeddings", {"model": NAME, "prompt": ["a"]})

    def test_fills_the_context(self):
        self.assertEqual(len(self.embed([17] * 512, pooling="mean")), self.size)

    def test_more_inputs_than_the_queue_takes(self):
        inputs = [[1, 17 + i % 50, 300 + i % 7] for i in range(300)]
        data = self.server.post(EMBEDDINGS, {"input": inputs, "pooling": "mean"})["data"]
        self.assertEqual([entry["index"] for entry in data], list(range(300)))
        for i in (0, 1, 49, 299):
            self.assertEqual(data[i]["embedding"], self.embed(inputs[i], pooling="mean"))
        self.assertEqual(self.server.busy(), 0)

    def test_is_the_same_beside_other_work(self):
        texts = [" ".join(TEXTS) + " " + word for word in ("dog", "sun", "time", "warm", "ran")]
        want = {pooling: [self.embed(text, pooling=pooling) for text in texts] for pooling in POOLINGS}
        asked = {"prompt": "Once upon a time", "max_tokens": 120, "temperature": 0}
        told = self.server.completion(**asked)["choices"]
        texts_told, *found = together([lambda: [self.server.completion(**asked)["choices"] for _ in range(3)],
                                       *(lambda pooling=pooling: [self.rows(texts, pooling=pooling) for _ in range(3)] for pooling in POOLINGS)])
        self.assertEqual(texts_told, [told] * 3)
        for pooling, rows in zip(POOLINGS, found):
            self.assertEqual(rows, [want[pooling]] * 3, pooling)

    def test_ends_when_its_client_has_gone(self):
        before = self.server.metric("prompt_tokens_total")
        connection = self.server.ask(EMBEDDINGS, {"input": [[17] * 512] * 2000})
        self.server.await_accepted(1)
        connection.close()
        self.server.await_idle()
        self.assertLess(self.server.metric("prompt_tokens_total") - before, 512 * 2000)

    def test_a_full_queue_refuses(self):
        """Ten others are under way: two run, eight wait. Where some have ended before the eleventh came, they are sent again."""
        for _ in range(20):
            others = [self.server.ask(*LONG) for _ in range(10)]
            status, _, data = self.server.send("POST", EMBEDDINGS, {"input": ["a", "b"]})
            for other in others:
                other.close()
            self.server.await_idle()
            if status != 200:
                break
        self.assertEqual((status, json.loads(data).get("error", {}).get("code")), (429, "queue_full"))

    def test_goes_on_where_the_queue_is_almost_full(self):
        """Nine others came before it. Where some have ended already, the queue is emptier, and it goes on as well."""
        ended = self.server.metric("request_success_total", finished_reason="length")
        others = [self.server.ask(*LONG) for _ in range(9)]
        self.server.await_accepted(9, ended)
        rows = self.rows(TEXTS * 10)
        self.assertEqual(rows[:4], rows[-4:])
        for other in others:
            self.assertEqual(other.getresponse().status, 200)
            other.close()


class Pairs(ServerCase):
    """A model with a head that scores pairs; what its last state gives times the head's rows is the oracle."""
    FLAGS = (*ONE_THREAD, "-q")
    TEMPLATE = "Query: {query}\nDocument: {document}\n"
    QUERY = "The {document} was warm."

    def ranker(self, template=TEMPLATE, **head):
        """The path of the model."""
        path = str(new_folder(self.addCleanup) / "ranker.gguf")
        self.rows = with_rerank_head(TARGET, path, template, **head)
        return path

    def test_scores_are_those_of_the_head(self):
        server = self.serve(model=self.ranker())
        want = []
        for document in TEXTS:
            text = "Query: " + self.QUERY + "\nDocument: " + document + "\n"
            body = {"input": text, "pooling": "last", "embd_normalize": -1, "add_special_tokens": False}
            want.append(product(server.post(EMBEDDINGS, body)["data"][0]["embedding"], self.rows[0]))
        body = {"query": self.QUERY, "documents": TEXTS}
        for path in (RERANK, "/reranking"):
            reply = server.post(path, body)
            self.assertEqual([result["index"] for result in reply["results"]], sorted(range(4), key=lambda i: -want[i]))
            for result in reply["results"]:
                self.assertAlmostEqual(result["relevance_score"], want[result["index"]], delta=1e-4 * max(map(abs, want)))
            self.assertEqual(reply["notices"], [])
        texts = server.post(RERANK, {"query": self.QUERY, "texts": TEXTS, "return_text": True, "pooling": "rank"})
        self.assertEqual([(result["index"], result["score"], result["text"]) for result in texts],
                         [(result["index"], result["relevance_score"], TEXTS[result["index"]]) for result in reply["results"]])
        self.assertNotEqual(server.post(RERANK, {**body, "pooling": "mean"})["notices"], [])
        for path, body, field in ((EMBEDDINGS, {"input": "a"}, "pooling"), (RERANK, {"query": "a " * 100_000, "documents": ["b"] * 2000}, "documents"),
                                  (RERANK, {"query": "a", "documents": ["b", "a dog " * 2000]}, "documents[1]")):
            self.assertEqual(server.error(path, body)["param"], field)

    def test_without_a_template_pairs_are_refused(self):
        error = self.serve(model=self.ranker(None)).error(RERANK, {"query": "a", "documents": ["b"]})
        self.assertEqual(error["param"], "pooling")
        self.assertIn("tokenizer.chat_template.rerank", error["message"])

    def test_a_head_of_another_width_is_refused_at_the_start(self):
        done = run_program("generate", "-m", self.ranker(width=64), "-p", "a", "-n", "1", "--repack-cache", "off")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("cls.output.weight", done.stderr)


if __name__ == "__main__":
    main()

// node-llama-cpp for task.py: reads requests as lines of JSON, answers in lines of JSON.
import {createInterface} from "node:readline";
import {getLlama} from "node-llama-cpp";

const [path, threads] = process.argv.slice(2);
const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");

const llama = await getLlama({gpu: false, maxThreads: Number(threads), logLevel: "error"});
const model = await llama.loadModel({modelPath: path});
const context = await model.createContext({contextSize: 8192, threads: Number(threads)});
let sequence = context.getSequence();
let stopped = false;
let running = Promise.resolve();

async function generate(ids, limit) {
    stopped = false;
    // What the context already holds of this prompt stays; at least the last token is evaluated.
    let shared = 0;
    const held = sequence.contextTokens;
    while (shared < held.length && shared < ids.length - 1 && held[shared] === ids[shared])
        shared++;
    if (shared < held.length)
        await sequence.eraseContextTokenRanges([{start: shared, end: held.length}]);
    let count = 0;
    for await (const token of sequence.evaluate(ids.slice(shared), {temperature: 0})) {
        if (stopped || model.isEogToken(token))
            break;
        say({done: false, text: model.detokenize([token], true)});
        if (++count >= limit)
            break;
        await new Promise((resolve) => setImmediate(resolve)); // lets a stop come in
    }
    say({done: true});
}

say({done: true}); // loaded
createInterface({input: process.stdin}).on("line", (line) => {
    const request = JSON.parse(line);
    if (request.stop)
        stopped = true;
    else if (request.clear)
        running = running.then(async () => { await sequence.clearHistory(); say({done: true}); });
    else
        running = running.then(() => generate(request.ids, request.limit));
}).on("close", () => process.exit(0));

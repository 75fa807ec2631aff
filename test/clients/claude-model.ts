import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type ModelServer, type SeenRequest, startModelServer } from '../support/model-server.ts';

/** A call of a tool of Claude Code, as a model writes it. */
export interface ToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What the model saw of a call. */
export interface ToolResult {
  readonly text: string;
  readonly isError: boolean;
  /** Milliseconds between the model's call and its result. */
  readonly ms: number;
}

/** The calls of one turn; later ones may depend on what the model has seen until then. */
export type Turn =
  | readonly ToolCall[]
  | ((seen: readonly ToolResult[]) => readonly ToolCall[] | Promise<readonly ToolCall[]>);

/** A model that plays its turns, whatever it is told, and notes what it sees. */
export interface ScriptedModel {
  readonly url: string;
  /** One for each call, in the script's order. */
  readonly results: readonly ToolResult[];
  /** Each request for a turn of the conversation. */
  readonly requests: readonly SeenRequest[];
  close(): Promise<void>;
}

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly tool_use_id?: string;
  readonly is_error?: boolean;
  readonly content?: string | readonly Block[];
}

/**
 * The Messages API of a model that is a script, on loopback, streaming as Claude Code expects it. `thinkMs`: how long it
 * takes for each turn.
 */
export async function startScriptedModel(turns: readonly Turn[], thinkMs = 0): Promise<ScriptedModel> {
  const results: ToolResult[] = [];
  const requests: SeenRequest[] = [];
  let waiting: readonly string[] = [];
  let turn = 0;
  let calledAt = 0;
  const server: ModelServer = await startModelServer(async (response, request) => {
    const arrived = performance.now();
    if (!isTurn(request)) {
      sendMessage(response, []);
      return;
    }
    requests.push(request);
    const blocks = toolResults(request);
    for (const id of waiting) {
      const block = blocks.findLast(({ tool_use_id }) => tool_use_id === id);
      if (block !== undefined) results.push({ ...shownToModel(block), ms: arrived - calledAt });
    }
    const next = turns[turn++] ?? [];
    const calls = typeof next === 'function' ? await next(results) : next;
    if (thinkMs > 0) await pause(thinkMs);
    const named = calls.map((call, at) => ({ ...call, id: `toolu_${turn}_${at}` }));
    waiting = named.map(({ id }) => id);
    sendMessage(response, named);
    calledAt = performance.now();
  });
  return { url: server.url, results, requests, close: () => server.close() };
}

/** A title, a summary and the like are asked for without tools. */
function isTurn({ path, body }: SeenRequest): boolean {
  return path?.split('?')[0] === '/v1/messages' && Array.isArray(body.tools) && body.tools.length > 0;
}

function toolResults({ body }: SeenRequest): readonly Block[] {
  const messages = body.messages as readonly { readonly content: string | readonly Block[] }[];
  return messages
    .flatMap(({ content }) => (typeof content === 'string' ? [] : content))
    .filter(({ type }) => type === 'tool_result');
}

/** Without the agent's own reminders, which stand behind it. */
function shownToModel({ content = '', is_error: isError = false }: Block): Omit<ToolResult, 'ms'> {
  const text = typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('');
  return { text: text.replace(/\s*<system-reminder>[\s\S]*<\/system-reminder>\s*$/, ''), isError };
}

/** An answer of the API as a stream of server-sent events: the calls, or a last word. */
function sendMessage(response: ServerResponse, calls: readonly (ToolCall & { readonly id: string })[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const event = (type: string, data: Readonly<Record<string, unknown>>) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  const message = { type: 'message', role: 'assistant', model: 'scripted', content: [] };
  const usage = { input_tokens: 1, output_tokens: 1 };
  event('message_start', {
    message: { id: `msg_${performance.now()}`, ...message, stop_reason: null, stop_sequence: null, usage },
  });
  const block = (index: number, start: unknown, delta: unknown) => {
    event('content_block_start', { index, content_block: start });
    event('content_block_delta', { index, delta });
    event('content_block_stop', { index });
  };
  if (calls.length === 0) block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'Done.' });
  for (const [index, { id, tool, input }] of calls.entries())
    block(
      index,
      { type: 'tool_use', id, name: tool, input: {} },
      { type: 'input_json_delta', partial_json: JSON.stringify(input) },
    );
  const stop = calls.length === 0 ? 'end_turn' : 'tool_use';
  event('message_delta', { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 1 } });
  event('message_stop', {});
  response.end();
}

import { z } from 'zod';
import { ERROR_CODES } from '../../base/errors/codes.ts';
import { CANCEL, cancelParams, METHODS, NOTIFICATIONS } from './tables.ts';

type Schema = Readonly<Record<string, unknown>>;

const ID = { type: ['string', 'number'] };
const ref = (name: string) => ({ $ref: `#/$defs/${name}` });
const version = { const: '2.0' };

function of(schema: z.ZodType, io: 'input' | 'output'): Schema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}

function message(properties: Schema, required: readonly string[], description?: string): Schema {
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    properties: { jsonrpc: version, ...properties },
    required: ['jsonrpc', ...required],
    additionalProperties: false,
  };
}

/** The JSON Schema of the protocol: made from what the server validates with. One message is one line. */
export function serveSchema(): Schema {
  const definitions: Record<string, unknown> = {};
  for (const [name, { summary, params, result }] of Object.entries(METHODS)) {
    definitions[`${name}.params`] = of(params, 'input');
    definitions[`${name}.result`] = of(result, 'input');
    definitions[`${name}.request`] = message(
      { id: ID, method: { const: name }, params: ref(`${name}.params`) },
      ['id', 'method', ...(params.safeParse(undefined).success ? [] : ['params'])],
      summary,
    );
    definitions[`${name}.response`] = message({ id: ID, result: ref(`${name}.result`) }, ['id', 'result']);
  }
  for (const [name, { summary, params }] of Object.entries(NOTIFICATIONS)) {
    definitions[`${name}.notification`] = message(
      { method: { const: name }, params: of(params, 'input') },
      ['method', 'params'],
      summary,
    );
  }
  definitions.cancel = message(
    { method: { const: CANCEL }, params: of(cancelParams, 'input') },
    ['method', 'params'],
    'Gives a request up. It has its response all the same: a run with the status `canceled`.',
  );
  definitions.error = message(
    {
      id: { type: ['string', 'number', 'null'] },
      error: {
        type: 'object',
        properties: {
          code: { type: 'integer', description: 'As in JSON-RPC 2.0; -32000: an error of ours, see data.' },
          message: { type: 'string' },
          data: {
            type: 'object',
            properties: {
              code: { enum: Object.keys(ERROR_CODES), description: 'Stable.' },
              message: { type: 'string' },
            },
            required: ['code', 'message'],
            additionalProperties: false,
          },
        },
        required: ['code', 'message', 'data'],
        additionalProperties: false,
      },
    },
    ['id', 'error'],
  );
  const requests = [...Object.keys(METHODS).map((name) => ref(`${name}.request`)), ref('cancel')];
  const said = [
    ...Object.keys(METHODS).map((name) => ref(`${name}.response`)),
    ref('error'),
    ...Object.keys(NOTIFICATIONS).map((name) => ref(`${name}.notification`)),
  ];
  const orBatch = (single: readonly Schema[]) => ({
    anyOf: [...single, { type: 'array', minItems: 1, items: { anyOf: single } }],
  });
  definitions.clientMessage = orBatch(requests);
  definitions.serverMessage = orBatch(said);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Protocol of sandbox-run serve',
    description:
      'JSON-RPC 2.0, one message per line, UTF-8. A client sends clientMessage, the server serverMessage.',
    anyOf: [ref('clientMessage'), ref('serverMessage')],
    $defs: definitions,
  };
}

import {
  type Attributes,
  context,
  type Histogram,
  metrics,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { Facts, Measure, Telemetry } from '../model/index.ts';
import { packageVersion } from '../version.ts';

const NAME = 'sandbox-run';

const KINDS: Readonly<Partial<Record<Measure, SpanKind>>> = {
  submit: SpanKind.PRODUCER,
  job: SpanKind.CONSUMER,
};
/** Attributes with few values, so that they fit into metrics; all others are in traces only. */
const OF_METRICS = ['status', 'outcome', 'backend', 'queue'];
const GOOD = new Set<unknown>(['exited', 'allowed', undefined]);

/** Spans and metrics of OpenTelemetry. */
export function createTelemetry(): Telemetry {
  const tracer = trace.getTracer(NAME, packageVersion);
  const meter = metrics.getMeter(NAME, packageVersion);
  const runs = meter.createCounter('sandbox_run.runs', { description: 'runs by what became of them' });
  const histograms = new Map<Measure, Histogram>();
  const histogram = (what: Measure): Histogram => {
    const found =
      histograms.get(what) ?? meter.createHistogram(`sandbox_run.${nameOf(what)}.duration`, { unit: 'ms' });
    histograms.set(what, found);
    return found;
  };
  return {
    begin(what, { parent, since } = {}) {
      const outer = parent === undefined ? context.active() : (contextOf(parent) ?? context.active());
      const options = {
        kind: KINDS[what] ?? SpanKind.INTERNAL,
        ...(since === undefined ? {} : { startTime: since }),
      };
      const span = tracer.startSpan(`sandbox_run.${nameOf(what)}`, options, outer);
      const inner = trace.setSpan(outer, span);
      const before = since === undefined ? 0 : Math.max(0, Date.now() - since);
      const from = performance.now();
      let isOver = false;
      return {
        traceparent: traceparentOf(span.spanContext()),
        within: (work) => context.with(inner, work),
        end(facts = {}) {
          if (isOver) return;
          isOver = true;
          const milliseconds = before + performance.now() - from;
          const attributes = attributesOf(facts);
          span.setAttributes(attributes);
          if (!GOOD.has(facts.status) || !GOOD.has(facts.outcome))
            span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
          const few = Object.fromEntries(
            Object.entries(attributes).filter(([name]) => OF_METRICS.includes(name.slice(PREFIX.length))),
          );
          histogram(what).record(milliseconds, few);
          if (what === 'run') runs.add(1, few);
        },
      };
    },
  };
}

const PREFIX = 'sandbox_run.';
const nameOf = (what: Measure) => what.replace('-', '_');

function attributesOf(facts: Facts): Attributes {
  const said = Object.entries(facts).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said.map(([name, value]) => [`${PREFIX}${name}`, value]));
}

type SpanContext = ReturnType<ReturnType<ReturnType<typeof trace.getTracer>['startSpan']>['spanContext']>;

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string | undefined {
  if (/^0+$/.test(traceId)) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

function contextOf(traceparent: string) {
  const [, traceId, spanId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return trace.setSpanContext(context.active(), {
    ...{ traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true },
  });
}

import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Lease } from '../../src/fleet/index.ts';
import { createSandbox } from '../../src/run/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeFleetWorld } from './support.ts';

const spans = new InMemorySpanExporter();
const measures = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: measures, exportIntervalMillis: 3_600_000 });
const open = new Set<string>();
const openSpans: SpanProcessor = {
  onStart: ({ name }) => void open.add(name),
  onEnd: ({ name }) => void open.delete(name),
  forceFlush: async () => {},
  shutdown: async () => {},
};
const world = makeFleetWorld();

beforeAll(async () => {
  // Without providers nothing is loaded and nothing is measured.
  await using before = await createSandbox({ workspace: world.place.workspace });
  await before.run(['true']);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans), openSpans] }),
  );
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  // That sandbox was made before.
  await before.run(['true']);
});
afterAll(async () => {
  await reader.shutdown();
  trace.disable();
  metrics.disable();
  context.disable();
});

const SECRET = 'tell-nobody-7f3a';
const byName = () => Object.fromEntries(spans.getFinishedSpans().map((span) => [span.name, span]));

describe('OpenTelemetry', () => {
  it('has a run with its decision and its launch, within the span of the application', async () => {
    expect(spans.getFinishedSpans()).toEqual([]);
    const policy = { unsafe: { unjudged_commands: false } };
    await using sandbox = await createSandbox({ workspace: world.place.workspace, policy });
    const outer = trace.getTracer('application').startSpan('outer');
    await context.with(trace.setSpan(context.active(), outer), () =>
      sandbox.run(['sh', '-c', `: ${SECRET}; exit 3`], { env: { MINE: SECRET } }),
    );
    outer.end();
    const found = byName();
    const run = found['sandbox_run.run'];
    expect(run?.attributes).toMatchObject({
      'sandbox_run.status': 'exited',
      'sandbox_run.exit.code': 3,
      'sandbox_run.program': 'sh',
    });
    expect(run?.parentSpanContext?.spanId).toBe(outer.spanContext().spanId);
    for (const name of ['sandbox_run.decision', 'sandbox_run.launch'])
      expect(found[name]?.parentSpanContext?.spanId).toBe(run?.spanContext().spanId);
    await sandbox.run([`no-program-${SECRET}`]);
    await sandbox.run(['touch', `/srv/${SECRET}`]);
    const all = spans
      .getFinishedSpans()
      .map(({ name, attributes, events }) => ({ name, attributes, events }));
    expect(JSON.stringify(all)).not.toContain(SECRET);
    expect(JSON.stringify(all)).not.toContain(world.place.root);
    const ended = all.filter(({ name }) => name === 'sandbox_run.run');
    expect(ended.map(({ attributes }) => attributes['sandbox_run.status'])).toEqual([
      'exited',
      'setup-failed',
      'denied',
    ]);
  });

  it('ends every span, also of what was allowed and did not start', async () => {
    spans.reset();
    const sandbox = await createSandbox({ workspace: world.place.workspace });
    const running = sandbox.spawn(['sleep', '100']);
    await eventually(() => expect(byName()['sandbox_run.launch']).toBeDefined(), 60_000);
    expect([...open]).toEqual(['sandbox_run.run']);
    const givenUp = await sandbox.run(['true'], { signal: AbortSignal.abort() });
    expect(givenUp.status).toBe('canceled');
    expect(byName()['sandbox_run.launch']?.attributes).toEqual({ 'sandbox_run.status': 'canceled' });
    await sandbox.close();
    await running.result;
    expect([...open]).toEqual([]);
  });

  it('has one trace for submitter and worker, with the time in the queue', async () => {
    spans.reset();
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const job = await fleet.submit(['true']);
    // By the clock of the worker, a minute passes in which nobody takes the job.
    const { now } = Lease.prototype;
    const clock = vi.spyOn(Lease.prototype, 'now').mockImplementation(function (this: Lease) {
      return now.call(this) + 60_000;
    });
    await world.worker(queue);
    expect((await job.result).status).toBe('exited');
    clock.mockRestore();
    const found = byName();
    const submit = found['sandbox_run.submit']?.spanContext();
    expect(found['sandbox_run.submit']?.attributes).toMatchObject({ 'sandbox_run.job': job.id });
    const ofJob = found['sandbox_run.job'];
    expect(ofJob?.parentSpanContext?.spanId).toBe(submit?.spanId);
    expect(found['sandbox_run.queue_wait']?.parentSpanContext?.spanId).toBe(ofJob?.spanContext().spanId);
    expect(found['sandbox_run.run']?.parentSpanContext?.spanId).toBe(ofJob?.spanContext().spanId);
    const traces = new Set(Object.values(found).map((span) => span.spanContext().traceId));
    expect([...traces]).toEqual([submit?.traceId]);
    const [seconds = 0] = found['sandbox_run.queue_wait']?.duration ?? [];
    expect(seconds).toBeGreaterThan(58);
  });

  it('counts runs and measures times', async () => {
    await reader.forceFlush();
    const found =
      measures
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap(({ metrics: some }) => some) ?? [];
    const points = (name: string) =>
      found.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? [];
    const runs = points('sandbox_run.runs').map(({ attributes, value }) => [
      attributes['sandbox_run.status'],
      value,
    ]);
    expect(Object.fromEntries(runs)).toEqual({ exited: 2, 'setup-failed': 1, denied: 1, canceled: 2 });
    for (const name of ['decision', 'launch', 'run', 'queue_wait', 'job', 'submit'])
      expect(points(`sandbox_run.${name}.duration`).length, name).toBeGreaterThan(0);
    expect(JSON.stringify(found)).not.toContain(SECRET);
  });
});

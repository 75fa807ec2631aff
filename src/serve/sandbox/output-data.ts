import { createNeutralizer } from '../../run/output/neutralize.ts';

/** How output is sent. */
export interface OutputForm {
  readonly encoding: 'utf8' | 'base64';
  readonly escapes: 'keep' | 'neutralize';
}

/** Makes data for messages of the bytes of one stream, wherever they are cut. */
interface OutputEncoder {
  write(bytes: Uint8Array): string;
  /** What was held back. */
  end(): string;
}

/** @see OutputEncoder */
export function createOutputEncoder({ encoding, escapes }: OutputForm): OutputEncoder {
  if (encoding === 'base64') {
    return {
      write: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
      end: () => '',
    };
  }
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  if (escapes === 'keep') {
    return { write: (bytes) => decoder.decode(bytes, { stream: true }), end: () => decoder.decode() };
  }
  const neutralizer = createNeutralizer();
  return {
    write: (bytes) => neutralizer.write(decoder.decode(bytes, { stream: true })),
    end: () => neutralizer.write(decoder.decode()) + neutralizer.end(),
  };
}

import { describe, expect, it } from 'vitest';
import { publicationText, readPublication } from '../../../src/model/index.ts';

describe('the text of a published port', () => {
  it.each([
    ['3000', { port: 3000, orFree: false, inner: 3000, address: undefined }],
    ['8080:80', { port: 8080, orFree: false, inner: 80, address: undefined }],
    ['3000?', { port: 3000, orFree: true, inner: 3000, address: undefined }],
    ['3000?:80', { port: 3000, orFree: true, inner: 80, address: undefined }],
    ['0:3000', { port: 0, orFree: false, inner: 3000, address: undefined }],
    ['127.0.0.2:3000', { port: 3000, orFree: false, inner: 3000, address: '127.0.0.2' }],
    ['[::1]:3000:80', { port: 3000, orFree: false, inner: 80, address: '::1' }],
    [
      '/run/user/1/w.sock:80',
      { port: 0, orFree: false, inner: 80, address: undefined, socket: '/run/user/1/w.sock' },
    ],
    ['~/a b:c:1', { port: 0, orFree: false, inner: 1, address: undefined, socket: '~/a b:c' }],
    ['[fd00::1]:3000?', { port: 3000, orFree: true, inner: 3000, address: 'fd00::1' }],
  ])('%s is read and written again', (text, publication) => {
    expect(readPublication(text)).toEqual(publication);
    expect(publicationText(publication)).toBe(text);
  });

  it.each([
    ...['', '0', '80', '1023', '65536', '3000:0', '3000:65536', '0?:3000', '3000??', '3000:', '+3000'],
    ...[
      '/w.sock',
      '/w.sock:0',
      '/w.sock:65536',
      '/:80',
      '/run/:80',
      'w.sock:80',
      '/a\0b:80',
      `/${'x'.repeat(107)}:80`,
    ],
    ...['localhost:3000', '::1:3000', '[127.0.0.1]:3000', '127.0.0.1', '1.2.3:3000', '[fe80::1%lo]:3000'],
    ...[':3000', '3000 ', ' 3000', '3000\n', '3000:80:90', '0x1000', '3e3', '127.0.0.1:3000:80:1', '003000'],
  ])('%j is none', (text) => {
    expect(readPublication(text)).toBeUndefined();
  });
});

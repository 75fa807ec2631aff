import { everywhere, works } from './support/lab.ts';

const MAIN_C =
  '#include <stdio.h>\n#include <math.h>\n#include <pthread.h>\nint main(void) { printf("built %.0f\\n", sqrt(49)); }\n';

everywhere((lab) => {
  works(lab, 'gcc', {
    script: 'gcc -O1 -g -Wall -o main main.c -lm -lpthread && ./main',
    files: { 'main.c': MAIN_C },
    prints: 'built 7\n',
  });
});

everywhere(
  (lab) => {
    works(lab, 'gcc with pipes and precompiled header', {
      script:
        'gcc -pipe h.h -o h.h.gch && gcc -save-temps -include h.h main.c -o main -lm && ./main && ls | wc -l',
      files: { 'main.c': MAIN_C, 'h.h': '#include <stdlib.h>\n' },
      prints: /^built 7\n/,
    });
    works(lab, 'g++ with threads and exceptions', {
      script: 'g++ -std=c++20 -pthread -o main main.cc && ./main',
      files: {
        'main.cc':
          '#include <thread>\n#include <iostream>\nint main() { std::thread t([] { try { throw 7; } catch (int n) { std::cout << n << "\\n"; } }); t.join(); }\n',
      },
      needs: ['g++'],
      prints: '7\n',
    });
    works(lab, 'static and shared libraries', {
      script:
        'gcc -fPIC -c lib.c && ar rcs liba.a lib.o && gcc -shared -o liba.so lib.o && gcc main.c -L. -la -Wl,-rpath,. -o main && ./main && ldd main | grep -c liba.so && nm -D liba.so | grep -c " T f"',
      files: {
        'lib.c': 'int f(void) { return 7; }\n',
        'main.c': 'int f(void); int main(void) { return f() - 7; }\n',
      },
      prints: '1\n1\n',
    });
    works(lab, 'sanitizers', {
      script: 'gcc -fsanitize=address,undefined -o main main.c -lm && ASAN_OPTIONS=detect_leaks=0 ./main',
      files: { 'main.c': MAIN_C },
      prints: 'built 7\n',
    });
    works(lab, 'make with jobs and recursion', {
      script: 'make -s -j2 && cat out/a out/b',
      files: {
        Makefile: 'all: out/a out/b\nout/%:\n\t@mkdir -p out; $(MAKE) -s -C sub NAME=$* > $@\n',
        'sub/Makefile': 'all:\n\t@echo made $(NAME)\n',
      },
      prints: 'made a\nmade b\n',
    });
    works(lab, 'cmake and ctest', {
      script:
        'cmake -S . -B b >log && cmake --build b -j2 >>log && ./b/main && ctest --test-dir b -Q && cmake --install b --prefix inst >>log && ls inst/bin',
      files: {
        'CMakeLists.txt':
          'cmake_minimum_required(VERSION 3.18)\nproject(p C)\nadd_executable(main main.c)\ntarget_link_libraries(main m)\nenable_testing()\nadd_test(NAME t COMMAND main)\ninstall(TARGETS main)\n',
        'main.c': MAIN_C,
      },
      needs: ['cmake'],
      prints: 'built 7\nmain\n',
    });
    works(lab, 'configure-like scripts', {
      script:
        'for h in stdio.h sys/epoll.h nope.h; do echo "#include <$h>" > conftest.c; gcc -E conftest.c >/dev/null 2>&1 && echo "have $h"; done; rm conftest.c',
      prints: 'have stdio.h\nhave sys/epoll.h\n',
    });
    works(lab, 'cargo build, test and run', {
      script:
        'cargo build -q && cargo test -q 2>&1 | grep "1 passed" && cargo run -q && cargo metadata --format-version 1 >/dev/null && ls target/debug/p',
      files: {
        'Cargo.toml': '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nv = "1"\n',
        'src/main.rs':
          'fn main() { println!("{}", v::seven()); }\n#[test]\nfn works() { assert_eq!(v::seven(), 7); }\n',
        'vendor/v/Cargo.toml': '[package]\nname = "v"\nversion = "1.0.0"\nedition = "2021"\n',
        'vendor/v/src/lib.rs': 'pub fn seven() -> i32 { 7 }\n',
        'vendor/v/.cargo-checksum.json': '{"files":{}}',
        '.cargo/config.toml':
          '[source.crates-io]\nreplace-with = "vendored-sources"\n[source.vendored-sources]\ndirectory = "vendor"\n',
      },
      needs: ['cargo'],
      prints: /1 passed.*\n7\ntarget\/debug\/p\n$/s,
      options: { timeout: 60_000 },
    });
    works(lab, 'rustc', {
      script: 'rustc -O main.rs && ./main',
      files: { 'main.rs': 'fn main() { println!("rust"); }\n' },
      needs: ['rustc'],
      prints: 'rust\n',
    });
    works(lab, 'cargo says at once that a crate is not there', {
      script: 'cargo build 2>&1 | grep -c "offline"',
      files: {
        'Cargo.toml':
          '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nserde = "1"\n',
        'src/main.rs': 'fn main() {}\n',
      },
      needs: ['cargo'],
      prints: /[1-9]/,
    });
    works(lab, 'javac and java', {
      script:
        'javac Main.java && java -Djava.io.tmpdir="$TMPDIR" Main && jar cf a.jar Main.class && jar tf a.jar | tail -1',
      files: {
        'Main.java':
          'public class Main { public static void main(String[] a) throws Exception { java.nio.file.Files.createTempFile("a", "b"); System.out.println(Runtime.getRuntime().availableProcessors() > 0); } }\n',
      },
      needs: ['javac', 'jar'],
      prints: 'true\nMain.class\n',
    });
    works(lab, 'mvn', { script: 'mvn -v', needs: ['mvn'], prints: /Apache Maven/ });
    works(lab, 'go build', {
      script: 'go build -o main . && ./main && go test ./...',
      files: { 'go.mod': 'module p\n', 'main.go': 'package main\nfunc main() { println("go") }\n' },
      needs: ['go'],
      prints: /no test files/,
    });
  },
  { few: true },
);

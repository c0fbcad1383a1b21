// grammar.y -- tokens into the tree: models (.gm) and files of the standard library, which share everything below a block.
//
// A file is read to its end whatever its mistakes: after one, reading resumes behind the next `;` or `}`.
// Only `for`, `in`, `if`, `else` and the names of types are reserved; every other word may name a variable too.

%define api.pure full
%define api.location.type {Span}
%define api.value.type union
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param { void *scanner }
%parse-param { Parse *p }

%code requires {
#include "parse.h"
}
%code {
#define YYLLOC_DEFAULT(Current, Rhs, N) \
    ((Current) = (N) ? span_join(YYRHSLOC(Rhs, 1), YYRHSLOC(Rhs, N)) : (Span){ p->source, YYRHSLOC(Rhs, 0).to, YYRHSLOC(Rhs, 0).to, NULL })
#define YYINITDEPTH 400
#define YYMAXDEPTH  20000
int yylex(YYSTYPE *value, Span *at, void *scanner);
static void yyerror(Span *at, void *scanner, Parse *p, const char *text)      // the parser's stack is full
{
    (void)scanner, (void)text;
    nested_too_deeply(p, *at);
}
static List none(void) { return (List){ 0 }; }
static List one(Parse *p, void *item) { List l = { 0 }; list_add(p->arena, &l, item); return l; }
static List and_one(Parse *p, List l, void *item) { list_add(p->arena, &l, item); return l; }
static void *setting(Parse *p, const char *name, Ast *value)
{
    return arena_copy(p->arena, &(Setting){ .name = name, .value = value }, sizeof(Setting));
}
static void *keep(Parse *p, Declarator d) { return arena_copy(p->arena, &d, sizeof d); }
}

%token START_MODEL "start of the model" START_LIBRARY "start of the file"
%token YYEOF 0 "end of file"
%token <const char *> MODEL "`model`" DATA "`data`" LET "`let`" PRIOR "`prior`" LATENT "`latent`" LIKELIHOOD "`likelihood`"
%token <const char *> AUGMENT "`augment`" INFER "`infer`" PREDICT "`predict`" TARGET "`target`" BY "`by`" AS "`as`" ON "`on`"
%token FOR "`for`" IN "`in`" IF "`if`" ELSE "`else`"
%token <const char *> INT "`int`" REAL "`real`" VECTOR "`vector`" ROW_VECTOR "`row_vector`" MATRIX "`matrix`" ARRAY "`array`"
%token <const char *> SIMPLEX "`simplex`" ORDERED "`ordered`" POSITIVE_ORDERED "`positive_ordered`" UNIT_VECTOR "`unit_vector`"
%token <const char *> SUM_TO_ZERO_VECTOR "`sum_to_zero_vector`"
%token <const char *> COV_MATRIX "`cov_matrix`" CORR_MATRIX "`corr_matrix`" CHOLESKY_FACTOR_COV "`cholesky_factor_cov`"
%token <const char *> CHOLESKY_FACTOR_CORR "`cholesky_factor_corr`"
%token <const char *> DISTRIBUTION "`distribution`" FAMILY "`family`" AUGMENTATION "`augmentation`" REFERENCE "`reference`"
%token <const char *> SUPPORT "`support`" NATURAL "`natural`" BASE "`base`" LAW "`law`" MATCH "`match`" WHERE "`where`" REPLACE "`replace`"
%token <const char *> SYNONYMS "`synonyms`" FUNCTION "`function`" INCLUDE "`include`"
%token END_INCLUDE "the end of an included file"
%token <const char *> NAME "a name" STRING "a string"
%token <double> INTEGER "an integer" NUMBER "a number"
%token EQ "`==`" NE "`!=`" LE "`<=`" GE "`>=`" AND "`&&`" OR "`||`" ELT_MUL "`.*`" ELT_DIV "`./`" PLUS_EQ "`+=`" ARROW "`->`"
%token ';' "`;`" '{' "`{`" '}' "`}`" '(' "`(`" ')' "`)`" '[' "`[`" ']' "`]`" ',' "`,`" ':' "`:`" '?' "`?`" '=' "`=`" '~' "`~`"
%token '\\' "`\\`"
%token '|' "`|`" '<' "`<`" '>' "`>`" '+' "`+`" '-' "`-`" '*' "`*`" '/' "`/`" '%' "`%`" '^' "`^`" '!' "`!`" '\'' "`'`"

%precedence THEN
%precedence ELSE
%left OR
%left AND
%left EQ NE
%left '<' LE '>' GE
%left '+' '-'
%left '*' '/' '%' ELT_MUL ELT_DIV '\\'
%precedence SIGN
%right '^'

%type <const char *> name type_word support_word method as_opt foreign_block
%type <Ast *> expr argument bin sum postfix primary subscript bound end
%type <List> arguments arguments_opt
%type <List> exprs exprs_opt subscripts bounds bound_list dims declarators ranges names name_list settings setting_list
%type <Declarator> declarator
%type <TypeExpr> type
%type <ResultType> result_type
%type <StmtList> stmts stmt
%type <Call> call
%type <Truncation> truncation
%type <Decl *> range

%start file

%%

file:
    START_MODEL model
  | START_LIBRARY library
  ;

// ---- models ----

model:
    %empty
  | model model_part
  ;

model_part:
    MODEL name                              { model_named(p, @name, $name); }
  | MODEL name ';'                          { model_named(p, @name, $name); }
  | block_kind '{' stmts close              { block_add(p, @$, $stmts); }
  | request_kind '{' requests close
  | foreign_block '{'                       { foreign_block_named(p, @foreign_block, $foreign_block); }
    stmts close                             { p->quiet = false; }
  | function
  | INCLUDE STRING ';'                      { include_begin(p, scanner, @STRING, $STRING); }
    model END_INCLUDE
  | error                                   { p->function = NULL; }
  ;

function:                                   // types are optional: what has none takes and gives anything
    FUNCTION                                { formula_begin(p); }
        result_type[type] name '(' function_parameters ')' '=' expr ';'
                                            { formula_end(p, @name, $name, $type.present ? &$type.type : NULL, $expr); }
  ;

result_type:
    %empty                                  { $$.present = false; }
  | type                                    { $$.present = true; $$.type = $type; }
  ;

function_parameters:
    %empty
  | function_parameter_list
  ;

function_parameter_list:
    function_parameter
  | function_parameter_list ',' function_parameter
  ;

function_parameter:
    name                                    { formula_parameter(p, NULL, $name, @name); }
  | type name                               { formula_parameter(p, &$type, $name, @name); }
  ;

foreign_block:                              // of Stan and BUGS: one message for it all
    MODEL                                   { $$ = "model"; }
  | NAME                                    { $$ = $1; }
  | NAME[first] NAME[second]                { $$ = arena_printf(p->arena, "%s %s", $first, $second); }
  | NAME[first] DATA                        { $$ = arena_printf(p->arena, "%s data", $first); }
  ;

block_kind:
    DATA                                    { p->block = BLOCK_DATA; }
  | LET                                     { p->block = BLOCK_LET; }
  | PRIOR                                   { p->block = BLOCK_PRIOR; }
  | LATENT                                  { p->block = BLOCK_LATENT; }
  | LIKELIHOOD                              { p->block = BLOCK_LIKELIHOOD; }
  | PREDICT                                 { p->block = BLOCK_PREDICT; }
  ;

request_kind:
    AUGMENT                                 { p->block = BLOCK_AUGMENT; }
  | INFER                                   { p->block = BLOCK_INFER; }
  ;

requests:
    %empty
  | requests request
  ;

request:
    names BY method settings as_opt ';'     { request_add(p, @$, $names, @names, $method, $settings, $as_opt); }
  | error ';'
  ;

names:
    name                                    { $$ = one(p, (void *)$1); }
  | '(' name_list ')'                       { $$ = $2; }
  ;

name_list:
    name                                    { $$ = one(p, (void *)$1); }
  | name_list ',' name                      { $$ = and_one(p, $1, (void *)$3); }
  ;

method:
    name
  ;

settings:
    %empty                                  { $$ = none(); }
  | '(' ')'                                 { $$ = none(); }
  | '(' setting_list ')'                    { $$ = $2; }
  ;

setting_list:
    name '=' expr                           { $$ = one(p, setting(p, $name, $expr)); }
  | setting_list ',' name '=' expr          { $$ = and_one(p, $1, setting(p, $name, $expr)); }
  ;

as_opt:
    %empty                                  { $$ = NULL; }
  | AS name                                 { $$ = $name; }
  ;

// ---- statements ----

stmts:
    %empty                                  { $$ = (StmtList){ 0 }; }
  | stmts stmt                              { $$ = stmt_join($1, $2); }
  ;

stmt:
    ';'                                     { $$ = (StmtList){ 0 }; }
  | '{' stmts close                         { $$ = stmt_block(p, @$, $stmts); }
  | FOR '(' ranges ')' stmt[body]           { $$ = stmt_for(p, @$, $ranges, $body); }
  | IF '(' expr ')' stmt[yes] %prec THEN    { $$ = stmt_if(p, @$, $expr, $yes, (StmtList){ 0 }); }
  | IF '(' expr ')' stmt[yes] ELSE stmt[no] { $$ = stmt_if(p, @$, $expr, $yes, $no); }
  | type declarators ';'                    { $$ = stmt_declare(p, @$, $type, $declarators); }
  | type declarator '~' call truncation ';' { $$ = stmt_tilde(p, @$, &$type, &$declarator, NULL, $call, $truncation); }
  | expr '~' call truncation ';'            { $$ = stmt_tilde(p, @$, NULL, NULL, $expr, $call, $truncation); }
  | expr[left] '=' expr[right] ';'          { $$ = stmt_define(p, @$, $left, $right); }
  | expr[left] PLUS_EQ expr[right] ';'      { $$ = stmt_add(p, @$, $left, $right); }
  | expr ';'                                { $$ = stmt_not_one(p, @expr, $expr); }
  | error ';'                               { $$ = (StmtList){ 0 }; }
  ;

ranges:
    range                                   { $$ = one(p, $range); }
  | ranges ',' range                        { $$ = and_one(p, $1, $range); }
  ;

range:
    name IN expr[lo] ':' expr[hi]           { $$ = decl_index(p, $name, @name, $lo, $hi); }
  ;

call:
    name '(' arguments_opt ')'              { $$ = (Call){ $name, @name, @$, $arguments_opt }; }
  | name '(' argument[first] '|' arguments ')'
        { $$ = (Call){ $name, @name, @$, $arguments }; bar_misplaced(p, @4); list_add(p->arena, &$$.args, $first); }
  ;

truncation:
    %empty                                  { $$ = (Truncation){ 0 }; }
  | name '[' end[lower] ',' end[upper] ']'  { $$ = truncation(p, @name, $name, $lower, $upper); }
  | name '(' end[lower] ',' end[upper] ')'  { $$ = truncation(p, @$, NULL, $lower, $upper); }
  | name '[' expr[one] ']'                  { $$ = truncation_of_one_end(p, @$, @one, $name); }
  | name '(' expr[one] ')'                  { $$ = truncation_of_one_end(p, @$, @one, $name); }
  ;

end:
    %empty                                  { $$ = NULL; }
  | expr
  ;

// ---- declared types ----

type:
    INT bounds                              { $$ = type_scalar(p, @$, BASE_INT, $bounds); }
  | REAL bounds                             { $$ = type_scalar(p, @$, BASE_REAL, $bounds); }
  | type_word bounds                        { $$ = type_sized(p, @$, $type_word, $bounds, false, none()); }
  | type_word bounds '[' exprs ']'          { $$ = type_sized(p, @$, $type_word, $bounds, true, $exprs); }
  | ARRAY '[' exprs ']' type[of]            { $$ = type_array(p, @1, $exprs, $of); }
  | ARRAY '[' ']' type[of]                  { $$ = type_array(p, @1, none(), $of); }
  ;

type_word:
    VECTOR | ROW_VECTOR | MATRIX | SIMPLEX | ORDERED | POSITIVE_ORDERED | UNIT_VECTOR | SUM_TO_ZERO_VECTOR | COV_MATRIX | CORR_MATRIX
  | CHOLESKY_FACTOR_COV | CHOLESKY_FACTOR_CORR
  ;

bounds:
    %empty                                  { $$ = none(); }
  | '<' bound_list '>'                      { $$ = $2; }
  ;

bound_list:
    bound                                   { $$ = one(p, $1); }
  | bound_list ',' bound                    { $$ = and_one(p, $1, $3); }
  ;

bound:
    name '=' sum                            { $$ = bound(p, @$, $name, $sum); }
  ;

declarators:
    declarator                              { $$ = one(p, keep(p, $1)); }
  | declarator '=' expr                     { $1.init = $expr; $$ = one(p, keep(p, $1)); }
  | declarators ',' declarator              { $$ = and_one(p, $1, keep(p, $3)); }
  | declarators ',' declarator '=' expr     { $3.init = $expr; $$ = and_one(p, $1, keep(p, $3)); }
  ;

declarator:
    name                                    { $$ = (Declarator){ .name = $name, .span = @name }; }
  | name dims                               { $$ = (Declarator){ .name = $name, .span = @name, .dims = $dims }; }
  | name '[' range[row] ']'                 { $$ = (Declarator){ .name = $name, .span = @name, .row = $row }; }
  | name '[' range[row] ']' dims            { $$ = (Declarator){ .name = $name, .span = @name, .row = $row, .dims = $dims }; }
  | name '[' range[row] ',' exprs ']'       { $$ = (Declarator){ .name = $name, .span = @name, .row = $row, .dims = $exprs }; }
  ;

dims:
    '[' exprs ']'                           { $$ = $exprs; }
  | dims '[' exprs ']'                      { $$ = $1; for (int i = 0; i < $exprs.n; i++) list_add(p->arena, &$$, $exprs.item[i]); }
  ;

// ---- expressions ----

exprs_opt:
    %empty                                  { $$ = none(); }
  | exprs
  ;

exprs:
    expr                                    { $$ = one(p, $1); }
  | exprs ',' expr                          { $$ = and_one(p, $1, $3); }
  ;

arguments_opt:
    %empty                                  { $$ = none(); }
  | arguments
  ;

arguments:
    argument                                { $$ = one(p, $1); }
  | arguments ',' argument                  { $$ = and_one(p, $1, $3); }
  ;

argument:
    expr
  | name '=' expr[value]                    { $$ = ast_labelled(p, @name, $name, $value); }
  ;

expr:
    bin
  | bin[c] '?' expr[a] ':' expr[b]          { $$ = ast_kids(p, @$, AST_COND, $c, $a, $b); }
  | '(' name[t] ',' name[y] ')' ARROW expr[slope]
                                            { $$ = ast_function(p, @$, $t, @t, $y, @y, $slope); }
  ;

bin:
    sum
  | bin OR bin                              { $$ = ast_binary(p, @$, OP_OR, $1, $3); }
  | bin AND bin                             { $$ = ast_binary(p, @$, OP_AND, $1, $3); }
  | bin EQ bin                              { $$ = ast_binary(p, @$, OP_EQ, $1, $3); }
  | bin NE bin                              { $$ = ast_binary(p, @$, OP_NE, $1, $3); }
  | bin '<' bin                             { $$ = ast_binary(p, @$, OP_LT, $1, $3); }
  | bin LE bin                              { $$ = ast_binary(p, @$, OP_LE, $1, $3); }
  | bin '>' bin                             { $$ = ast_binary(p, @$, OP_GT, $1, $3); }
  | bin GE bin                              { $$ = ast_binary(p, @$, OP_GE, $1, $3); }
  ;

sum:
    postfix
  | sum '+' sum                             { $$ = ast_binary(p, @$, OP_ADD, $1, $3); }
  | sum '-' sum                             { $$ = ast_binary(p, @$, OP_SUB, $1, $3); }
  | sum '*' sum                             { $$ = ast_binary(p, @$, OP_MUL, $1, $3); }
  | sum '/' sum                             { $$ = ast_binary(p, @$, OP_DIV, $1, $3); }
  | sum '%' sum                             { $$ = ast_binary(p, @$, OP_MOD, $1, $3); }
  | sum '\\' sum                             { $$ = ast_left_divide(p, @$, $1, $3); }
  | sum ELT_MUL sum                         { $$ = ast_binary(p, @$, OP_ELT_MUL, $1, $3); }
  | sum ELT_DIV sum                         { $$ = ast_binary(p, @$, OP_ELT_DIV, $1, $3); }
  | sum '^' sum                             { $$ = ast_binary(p, @$, OP_POW, $1, $3); }
  | '-' sum %prec SIGN                      { $$ = ast_unary(p, @$, OP_NEG, $2); }
  | '+' sum %prec SIGN                      { $$ = $2; }
  | '!' sum %prec SIGN                      { $$ = ast_unary(p, @$, OP_NOT, $2); }
  ;

postfix:
    primary
  | postfix '\''                            { $$ = ast_kids(p, @$, AST_TRANSPOSE, $1, NULL, NULL); }
  | postfix '[' subscripts ']'              { $$ = ast_index(p, @$, $1, $subscripts); }
  ;

primary:
    INTEGER                                 { $$ = ast_number(p, @$, AST_INT, $1); }
  | NUMBER                                  { $$ = ast_number(p, @$, AST_REAL, $1); }
  | name                                    { $$ = ast_name(p, @$, $1); }
  | name '(' arguments_opt ')'              { $$ = ast_list(p, @$, AST_CALL, $name, $arguments_opt); }
  | name '(' argument[value] '|' arguments ')'
                                            { $$ = density_call(p, @$, $name, @4, $value, $arguments); }
  | name '(' name[index] IN expr[lo] ':' expr[hi] ',' expr[body] ')'
                                            { $$ = ast_reduce(p, @$, $1, $index, @index, $lo, $hi, $body); }
  | '(' expr ')'                            { $$ = $2; }
  | '[' exprs ']'                           { $$ = ast_list(p, @$, AST_ARRAY, NULL, $exprs); }
  ;

subscripts:
    subscript                               { $$ = one(p, $1); }
  | subscripts ',' subscript                { $$ = and_one(p, $1, $3); }
  ;

subscript:
    %empty                                  { $$ = ast_kids(p, @$, AST_ALL, NULL, NULL, NULL); }
  | expr
  | expr[lo] ':' expr[hi]                   { $$ = ast_kids(p, @$, AST_RANGE, $lo, $hi, NULL); }
  | expr[lo] ':'                            { $$ = ast_kids(p, @$, AST_RANGE, $lo, NULL, NULL); }
  | ':' expr[hi]                            { $$ = ast_kids(p, @$, AST_RANGE, NULL, $hi, NULL); }
  | ':'                                     { $$ = ast_kids(p, @$, AST_ALL, NULL, NULL, NULL); }
  ;

name:
    NAME | MODEL | DATA | LET | PRIOR | LATENT | LIKELIHOOD | AUGMENT | INFER | PREDICT | TARGET | BY | AS | ON
  | DISTRIBUTION | FAMILY | AUGMENTATION | REFERENCE | SUPPORT | NATURAL | BASE | LAW | MATCH | WHERE | REPLACE
  | SYNONYMS | FUNCTION | INCLUDE
  ;

// ---- files of the standard library ----

library:
    %empty
  | library library_part
  ;

library_part:
    DISTRIBUTION name                       { distribution_begin(p, @name, $name, false); }
        '(' parameters ')' '{' parts close  { distribution_end(p); }
  | FAMILY name                             { distribution_begin(p, @name, $name, true); }
        powers '{' parts close              { distribution_end(p); }
  | AUGMENTATION name                       { augmentation_begin(p, @name, $name); }
        '{' rule_parts close                { augmentation_end(p); }
  | function
  | error                                   { p->function = NULL; }
  ;

close:
    '}'
  | error '}'
  ;

parameters:
    %empty
  | parameter_list
  ;

parameter_list:
    parameter
  | parameter_list ',' parameter
  ;

parameter:
    type name                               { distribution_parameter(p, $type, $name, @name); }
  ;

powers:
    %empty
  | '(' name ')'                            { p->distribution->power = $name; }
  ;

parts:
    %empty
  | parts part
  ;

part:
    name '=' expr ';'                       { distribution_part(p, @name, $name, $expr); }
  | NAME STRING ';'                         { distribution_text(p, @NAME, $NAME, $STRING); }
  | REFERENCE STRING ';'                    { p->distribution->reference = $STRING; }
  | SUPPORT support_word ';'                { distribution_support(p, @support_word, $support_word, none()); }
  | SUPPORT support_word '(' exprs_opt ')' ';'
                                            { distribution_support(p, @support_word, $support_word, $exprs_opt); }
  | BASE expr ';'                           { distribution_part(p, @BASE, $BASE, $expr); }
  | NATURAL '{' naturals close
  | SYNONYMS '{' synonyms close
  | LAW expr '~' call                       { distribution_law(p, @LAW, $expr, $call); }
    '{' law_parameters close
  | error ';'
  ;

support_word:
    name | REAL | VECTOR | SIMPLEX | ORDERED
  ;

naturals:
    %empty
  | naturals natural
  ;

natural:
    name ON expr ';'                        { distribution_natural(p, $name, $expr); }
  | error ';'
  ;

synonyms:
    %empty
  | synonyms synonym
  ;

synonym:
    name[word] '=' name[of] ';'             { distribution_synonym(p, @word, $word, $of); }
  | error ';'
  ;

law_parameters:
    %empty
  | law_parameters law_parameter
  ;

law_parameter:
    name '=' expr ';'                       { distribution_law_parameter(p, $name, $expr); }
  | error ';'
  ;

rule_parts:
    %empty
  | rule_parts rule_part
  ;

rule_part:
    REFERENCE STRING ';'                    { p->augmentation->reference = $STRING; }
  | MATCH expr '~' call truncation ';'      { augmentation_match(p, @$, $expr, $call, $truncation); }
  | WHERE expr ';'                          { p->augmentation->where = $expr; }
  | REPLACE '{' stmts close                 { p->augmentation->replace = $stmts.first; }
  | error ';'
  ;

%%

static int yyreport_syntax_error(const yypcontext_t *at, void *scanner, Parse *p)
{
    (void)scanner;
    enum { MOST = YYNTOKENS };
    yysymbol_kind_t expected[MOST];
    int n = yypcontext_expected_tokens(at, expected, MOST);
    const char *names[MOST];
    for (int i = 0; i < n; i++) names[i] = yysymbol_name(expected[i]);
    syntax_error(p, *yypcontext_location(at), names, n < 0 ? 0 : n);
    return 0;
}
